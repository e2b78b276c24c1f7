"""Django's database connections between two tasks: kept while healthy, and reset."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.sessions import is_postgresql

logger = logging.getLogger("taskqueue.worker")

IDLE_LIMIT = 10.0  # Seconds without a task after which a connection is checked before its next use.


def reset_connections() -> None:
    """Roll back the transactions that a task left open in this thread; drop broken connections."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _reset(connection)
        elif connection.in_atomic_block:
            _forget_transaction(connection)


def _reset(connection: BaseDatabaseWrapper) -> None:
    if connection.in_atomic_block:
        _forget_transaction(connection)
        connection.close()
        return
    try:
        if not connection.get_autocommit():
            connection.rollback()
            connection.set_autocommit(True)
        elif _has_open_transaction(connection):
            connection.connection.rollback()
        if connection.errors_occurred:
            if connection.is_usable():
                connection.errors_occurred = False
            else:
                connection.close()
    except Exception:
        _drop(connection)
    if connection.queries_log:
        connection.queries_log.clear()


def _has_open_transaction(connection: BaseDatabaseWrapper) -> bool:
    session: Any = connection.connection
    if is_postgresql(connection):
        return bool(session.pgconn.transaction_status != 0)
    return bool(getattr(session, "in_transaction", False))


def _forget_transaction(connection: BaseDatabaseWrapper) -> None:
    connection.in_atomic_block = False
    connection.savepoint_ids = []
    connection.atomic_blocks = []
    connection.needs_rollback = False
    connection.run_on_commit = []
    connection.closed_in_transaction = False


def _drop(connection: BaseDatabaseWrapper) -> None:
    try:
        connection.close()
    except Exception:
        connection.connection = None


def close_quietly(connection: BaseDatabaseWrapper | None) -> None:
    """Close a connection of the worker's own, whatever state it is in."""
    if connection is not None:
        try:
            connection.close()
        except Exception as error:
            logger.debug("Connection did not close error=%s", error)


def doubt_connections() -> None:
    """Drop those connections of this thread that are no longer usable."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None and not connection.in_atomic_block:
            if connection.is_usable():
                continue
            _drop(connection)


class Freshness:
    """Whether the connections of one thread have to be checked before their next use."""

    def __init__(self) -> None:
        self._used_at = time.monotonic()
        self.is_suspect = False

    def before_task(self) -> None:
        """Check the connections where there is a reason to."""
        if self.is_suspect or time.monotonic() - self._used_at > IDLE_LIMIT:
            self.is_suspect = False
            doubt_connections()

    def after_task(self) -> None:
        """Clean up after a task."""
        reset_connections()
        self._used_at = time.monotonic()
