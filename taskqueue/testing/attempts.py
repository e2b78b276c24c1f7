"""One attempt in the test's own process, thread and transaction."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress
from typing import Any

from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.retries import class_path
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.record import write_logs, write_notes
from taskqueue.engine.tally import Tally
from taskqueue.exceptions import AttemptLost, DeadlineExceeded, TaskTimeout
from taskqueue.models import Lease
from taskqueue.testing.journeys import seconds_ahead
from taskqueue.testing.transactions import Callbacks, as_if_committed, savepoint
from taskqueue.worker.context import Context
from taskqueue.worker.execution import Attempt
from taskqueue.worker.frames import Frame
from taskqueue.worker.jobs import Order
from taskqueue.worker.leases import PendingWrites, aged_lines
from taskqueue.worker.reporting import Reports, keep_logs


class Crash(BaseException):
    """Raise it in a body, for example by a mock, to lose the attempt as if its process had died."""


class WatchedContext(Context):
    """A context that asks the database for requests to stop: there is no worker to pass them on."""

    @property
    def stop_requested(self) -> bool:
        """Return whether this attempt was asked to stop. On an event loop: if known."""
        if self._stop_reason is None:
            # Not from async code: Django forbids it there.
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
        context = order.context(
            worker_name,
            report_progress=self._reports.report_progress,
            report_line=self._reports.report_line,
            make=WatchedContext,
        )
        super().__init__(order, context, tally)
        # The exception that the body raised.
        self.error: BaseException | None = None
        # In a worker the body would have been committed before they run.
        self.callbacks = Callbacks()

    def run_here(self) -> Frame:
        """Run the body to its end, and return the frame."""
        keep_logs()
        return self.run(self._call)

    def write_reports(self) -> None:
        """Write the lines and the progress of the body, while its lease runs."""
        pending, now = PendingWrites(), time.monotonic()
        pending.lines, pending.progress = self._reports.take()
        connection = project_connection()
        write_logs(connection, aged_lines(pending.lines, now))
        write_notes(connection, pending.take_notes([], now, started_before=now))

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
        """Return the exception of the time limit that has passed, if one has."""
        now = _monotonic()
        timeout, deadline_at = self.snapshot.get("timeout"), self.order.deadline_at
        if timeout is not None and now - started > timeout:
            return TaskTimeout(f"The body ran for longer than its timeout of {timeout:g} s.")
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
