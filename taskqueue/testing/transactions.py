"""Bodies within a test's transaction, where a worker would commit each of their statements."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError, atomic

from taskqueue.engine.statement import fetch

logger = logging.getLogger("taskqueue.testing")

IN_ERROR = 3
"""As libpq numbers the status of a transaction that refuses further statements."""
READ_IDLENESS = "SELECT current_setting('idle_in_transaction_session_timeout')"
KEEP_IDLENESS = "SELECT set_config('idle_in_transaction_session_timeout', %s, true)"
BROKEN = (
    "The body went on after the database refused one of its statements. Within a test's "
    "transaction PostgreSQL cannot: put that statement into atomic(), or use a test that commits."
)


def in_transactions() -> list[BaseDatabaseWrapper]:
    """The connections of this thread that stand in a transaction."""
    return [each for each in connections.all(initialized_only=True) if each.in_atomic_block]


@contextmanager
def as_if_committed() -> Iterator[None]:
    """Keep what a body writes, also where it raises then: in a worker it would be committed.

    A body that closes its connection leaves it open: the test's transaction would end with it.
    What stands in a transaction that the database has given up cannot be kept.
    """
    with ExitStack() as stack:
        for connection in in_transactions():
            stack.enter_context(_surviving(connection))
            stack.enter_context(_kept_open(connection))
        yield


@contextmanager
def _surviving(connection: BaseDatabaseWrapper) -> Iterator[None]:
    mark = connection.savepoint()
    waiting = len(connection.run_on_commit)
    try:
        yield
    except BaseException:
        _end(connection, mark, waiting)
        raise
    if not _end(connection, mark, waiting):
        raise TransactionManagementError(BROKEN)


@contextmanager
def _kept_open(connection: BaseDatabaseWrapper) -> Iterator[None]:
    vars(connection)["close"] = lambda: None
    try:
        yield
    finally:
        vars(connection).pop("close", None)


def _end(connection: BaseDatabaseWrapper, mark: Any, waiting: int) -> bool:
    """Keep what was written since the mark; whether that could be kept."""
    if not _is_broken(connection):
        connection.savepoint_commit(mark)
        return True
    connection.needs_rollback = False
    connection.savepoint_rollback(mark)
    connection.savepoint_commit(mark)
    del connection.run_on_commit[waiting:]
    return False


def _is_broken(connection: BaseDatabaseWrapper) -> bool:
    session: Any = connection.connection
    if connection.needs_rollback or connection.vendor != "postgresql":
        return connection.needs_rollback
    return bool(session.pgconn.transaction_status == IN_ERROR)


@contextmanager
def savepoint(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """For an atomic body: all or nothing, and the test's session as it was.

    A worker limits how long the session may be idle, so that it cannot keep its locks for long.
    """
    is_limited = connection.vendor == "postgresql"
    with atomic(using=connection.alias):
        before = fetch(connection, READ_IDLENESS)[0] if is_limited else ()
        yield
        if is_limited:
            fetch(connection, KEEP_IDLENESS, before)


class Callbacks:
    """What a body wants done on commit: done once it has ended, as nothing here commits."""

    def __init__(self) -> None:
        self._waiting = [(each, len(each.run_on_commit)) for each in in_transactions()]

    def run(self) -> None:
        """Do it, also what it wants done on commit in turn. Raises what it raises."""
        for connection, waiting in self._waiting:
            while len(connection.run_on_commit) > waiting:
                # The stubs do not know the third, whether its errors are only logged.
                _, callback, is_robust = cast(Any, connection.run_on_commit.pop(waiting))
                _do(callback, is_robust)


def _do(callback: Callable[[], object], is_robust: bool) -> None:
    try:
        callback()
    except Exception:
        if not is_robust:
            raise
        logger.exception("on_commit() callback failed")
