"""One attempt in the test's own process, thread and transaction."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, cast
from unittest.mock import patch

from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError, atomic

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.retries import class_path
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.record import write_logs, write_notes
from taskqueue.engine.statement import fetch
from taskqueue.engine.tally import Tally
from taskqueue.exceptions import AttemptLost, DeadlineExceeded, TaskTimeout
from taskqueue.models import Lease
from taskqueue.testing.journeys import seconds_ahead
from taskqueue.worker.bodies.context import Context
from taskqueue.worker.bodies.execution import Attempt
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.bodies.reporting import Reports, keep_logs
from taskqueue.worker.frames import Frame
from taskqueue.worker.leases import PendingWrites, aged_lines
from taskqueue.worker.outcomes import over_time


class Crash(BaseException):
    """Raise it in a body, for example by a mock, to lose the attempt as if its process had died."""


class WatchedContext(Context):
    """A context that reads requests to stop from the database, as no worker passes them on."""

    @property
    def stop_requested(self) -> bool:
        """Return whether this attempt was asked to stop. On an event loop: if known."""
        if self._stop_reason is None:
            # Not from async code, where Django forbids queries.
            with suppress(SynchronousOnlyOperation):
                self._look()
        return super().stop_requested

    def check(self) -> None:
        """Raise `Stopped` if this attempt was asked to stop."""
        if self.stop_requested:
            super().check()

    def _look(self) -> None:
        connection = project_connection()
        leases = Lease.objects.using(connection.alias).filter(id=self._lease_id)
        lease = leases.filter(stop_requested_at__isnull=False).first()
        if lease is not None:
            by = f" (by {lease.stop_requested_by})" if lease.stop_requested_by else ""
            self._request_stop((lease.stop_reason or "Asked to stop.") + by)
            dialect_for(connection).see_stops(connection, [lease.id])


class PlayedAttempt(Attempt):
    """An attempt as in a worker's child, except that time limits are checked after the body."""

    def __init__(self, order: Order, worker_name: str, tally: Tally) -> None:
        self._reports = Reports(max_log=get_settings().MAX_LOG)
        self._reports.on_progress = self._note_progress
        self._progressed_at = -math.inf
        context = order.context(worker_name, self._reports, WatchedContext)
        super().__init__(order, context, tally)
        # The exception that the body raised.
        self.error: BaseException | None = None
        # In a worker the body would be committed before the callbacks run.
        self.callbacks = Callbacks()

    def _note_progress(self, lease_id: int) -> None:
        self._progressed_at = _monotonic()

    def run_here(self) -> Frame:
        """Run the body to its end, and return the frame with its outcome."""
        keep_logs()
        return self.run(self._call)

    def write_reports(self) -> None:
        """Write the log lines and the progress of the body, while its lease is running."""
        pending, now = PendingWrites(), time.monotonic()
        pending.lines, pending.progress = self._reports.take()
        connection = project_connection()
        write_logs(connection, aged_lines(pending.lines, now))
        write_notes(connection, pending.take_notes([], now))

    def _transaction(self, connection: BaseDatabaseWrapper) -> AbstractContextManager[None]:
        if not connection.in_atomic_block:
            return super()._transaction(connection)
        return savepoint(connection)

    def _call(
        self, definition: BaseDefinition[Any, Any], context: Context, args: Any, kwargs: Any
    ) -> Any:
        body: Any = async_to_sync(definition.body) if definition.is_async else definition.body
        started = _monotonic()
        with as_if_committed():
            try:
                value = body(*args, **kwargs)
                if not definition.options.atomic:
                    self.callbacks.run()
            except Exception as error:
                if late := self._late(started):
                    raise late from error
                raise
            if late := self._late(started):
                raise late
        if definition.options.atomic:
            self.write_reports()
        return value

    def _late(self, started: float) -> TaskTimeout | DeadlineExceeded | None:
        """Return the exception of the time limit that has passed, or None."""
        now = _monotonic()
        timeout, deadline_at = self.snapshot.get("timeout"), self.order.deadline_at
        renews = self.snapshot.get("timeout_from") == "progress"
        since = max(started, self._progressed_at) if renews else started
        if timeout is not None and now - since > timeout:
            return TaskTimeout(over_time(timeout, renews=renews))
        if deadline_at is not None and now > deadline_at:
            return DeadlineExceeded("The deadline passed while the body ran.")
        return None

    def _failed(self, error: BaseException) -> Frame:
        self.error = error
        if not isinstance(error, Crash):
            return super()._failed(error)
        outcome = self._outcome(OutcomeKind.LOST)._replace(
            error_class=class_path(AttemptLost),
            error_message="The child process died (simulated by a test).",
        )
        return self._frame(outcome)


def _monotonic() -> float:
    return time.monotonic() + seconds_ahead()


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
        """Run the callbacks, and those that they register in turn. Raises what they raise."""
        for connection, waiting in self._waiting:
            while len(connection.run_on_commit) > waiting:
                # The third item, which the stubs lack, says whether errors are only logged.
                _, callback, is_robust = cast(Any, connection.run_on_commit.pop(waiting))
                _run(callback, is_robust)


def _run(callback: Callable[[], object], is_robust: bool) -> None:
    try:
        callback()
    except Exception:
        if not is_robust:
            raise
        logger.exception("on_commit() callback failed")
