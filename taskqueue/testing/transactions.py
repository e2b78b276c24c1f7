"""Bodies within a test's transaction, where a worker would commit their statements."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest.mock import patch

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError, atomic

from taskqueue.engine.statement import fetch

logger = logging.getLogger("taskqueue.testing")

# libpq's status of a transaction that refuses further statements.
IN_ERROR = 3
READ_IDLENESS = "SELECT current_setting('idle_in_transaction_session_timeout')"
KEEP_IDLENESS = "SELECT set_config('idle_in_transaction_session_timeout', %s, true)"
BROKEN = (
    "The body continued after the database had refused one of its statements. PostgreSQL cannot do "
    "so within a test's transaction: wrap that statement in atomic(), or use a test that commits."
)


def in_transactions() -> list[BaseDatabaseWrapper]:
    """Return the connections of this thread that are in a transaction."""
    return [
        connection
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block
    ]


@contextmanager
def as_if_committed() -> Iterator[None]:
    """Keep what a body writes, even if it raises: in a worker it would be committed.

    A body cannot close its connection: the test's transaction would end. Writes in a transaction
    that the database has aborted cannot be kept.
    """
    with ExitStack() as stack:
        for connection in in_transactions():
            stack.enter_context(_surviving(connection))
            stack.enter_context(patch.object(connection, "close"))
        yield


@contextmanager
def _surviving(connection: BaseDatabaseWrapper) -> Iterator[None]:
    mark: Any = connection.savepoint()
    waiting = len(connection.run_on_commit)
    try:
        yield
    finally:
        is_broken = _is_broken(connection)
        if is_broken:
            connection.needs_rollback = False
            connection.savepoint_rollback(mark)
            del connection.run_on_commit[waiting:]
        connection.savepoint_commit(mark)
    if is_broken:
        raise TransactionManagementError(BROKEN)


def _is_broken(connection: BaseDatabaseWrapper) -> bool:
    session: Any = connection.connection
    if connection.needs_rollback or connection.vendor != "postgresql":
        return connection.needs_rollback
    return bool(session.pgconn.transaction_status == IN_ERROR)


@contextmanager
def savepoint(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Run an atomic body: all or nothing, and leave the test's session as it was.

    A worker limits how long the session may be idle, so that it cannot keep its locks for long.
    """
    is_limited = connection.vendor == "postgresql"
    with atomic(using=connection.alias):
        before = fetch(connection, READ_IDLENESS)[0] if is_limited else ()
        yield
        if is_limited:
            fetch(connection, KEEP_IDLENESS, before)


class Callbacks:
    """The on_commit callbacks of a body: run once it has ended, because nothing commits here."""

    def __init__(self) -> None:
        self._waiting = [
            (connection, len(connection.run_on_commit)) for connection in in_transactions()
        ]

    def run(self) -> None:
        """Run them, and those that they register in turn. Raises what they raise."""
        for connection, waiting in self._waiting:
            while len(connection.run_on_commit) > waiting:
                # The third, which the stubs lack, tells whether errors are only logged.
                _, callback, is_robust = cast(Any, connection.run_on_commit.pop(waiting))
                _run(callback, is_robust)


def _run(callback: Callable[[], object], is_robust: bool) -> None:
    try:
        callback()
    except Exception:
        if not is_robust:
            raise
        logger.exception("on_commit() callback failed")
