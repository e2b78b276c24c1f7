"""The thread that talks to the database, one request at a time.

The main thread sends a request and goes on serving children: limits are kept and crashes seen while
the database takes its time, or is away.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

from django.db import DatabaseError, InterfaceError

from taskqueue.core.outcomes import Outcome, Recorded
from taskqueue.engine.connections import project_connection
from taskqueue.engine.notify import Listener
from taskqueue.engine.rows import Claimed, LogLine, Note
from taskqueue.engine.transient_errors import is_outage
from taskqueue.worker.connections import close_quietly
from taskqueue.worker.duties import Duties
from taskqueue.worker.worker_session import WorkerSession

logger = logging.getLogger("taskqueue.worker")


@dataclass(frozen=True, kw_only=True)
class DatabaseRequest:
    """A request: outcomes to write, how many tasks to claim, and what else to do."""

    outcomes: list[Outcome] = field(default_factory=list)
    lines: list[LogLine] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    want: int = 0
    # Names that this worker cannot run, and does not claim.
    unknown: list[str] = field(default_factory=list)
    unsure: list[int] = field(default_factory=list)  # Leases whose COMMIT got no answer.
    # The leases that the worker knows, where it is to hand back those that it does not.
    held: list[int] | None = None
    # Whether the worker has been claiming without a pause, so that nobody need wake it.
    is_busy: bool = False
    may_sleep: bool = True
    with_duties: bool = False

    @property
    def writes(self) -> bool:
        """Whether there is something to write."""
        return bool(self.outcomes or self.lines or self.notes)


@dataclass(kw_only=True)
class Report:
    """The results of a request, as far as it got."""

    request: DatabaseRequest
    has_exchanged: bool = False
    recorded: dict[int, Recorded] = field(default_factory=dict)
    claimed: list[Claimed] = field(default_factory=list)
    claimed_at: float = 0.0
    ended: list[int] = field(default_factory=list)  # Of the unsure ones, those that had ended.
    running: list[int] = field(default_factory=list)  # Of the unsure ones, those that had not.
    unknown_leases: list[int] = field(default_factory=list)
    has_ready: bool | None = None  # Whether the duties saw ready tasks; None: they were not served.
    duties_at: float | None = None  # When they are to be served next.
    error: Exception | None = None


class DatabaseThread:
    """Carries out requests, and wakes the main thread when a report is there."""

    def __init__(self, session: WorkerSession, duties: Duties, wake: Callable[[], None]) -> None:
        self._session = session
        self._duties = duties
        self._wake = wake
        self._requests: SimpleQueue[DatabaseRequest | None] = SimpleQueue()
        self._reports: SimpleQueue[Report] = SimpleQueue()
        self.under_way: DatabaseRequest | None = None
        self._is_outage = False  # Whether the database was away when this thread last asked it.
        self.thread = threading.Thread(target=self._run, name="taskqueue-database", daemon=True)
        self.thread.start()

    # From the main thread

    def send(self, request: DatabaseRequest) -> None:
        """Begin a request; the one before must have been reported."""
        self.under_way = request
        self._requests.put(request)

    def report(self) -> Report | None:
        """The report of the request under way, once it is there."""
        if self.under_way is None or self._reports.empty():
            return None
        self.under_way = None
        return self._reports.get()

    @property
    def listener(self) -> Listener | None:
        """The listener; only between two requests, for they have its connection to themselves."""
        return self._session.listener if self.under_way is None else None

    @property
    def is_sqlite(self) -> bool:
        """Whether it works on SQLite."""
        return self._session.is_sqlite

    def hear(self) -> Exception | None:
        """Take in notifications between two requests; the error where the connection is lost."""
        if self.listener is not None:
            try:
                self.listener.hear()
            except (DatabaseError, InterfaceError, OSError) as error:
                self._session.close()
                return error
        return None

    def stop(self) -> None:
        """End the thread, unless the database keeps it."""
        self._requests.put(None)
        self.thread.join(timeout=5)

    # In the thread

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            report = Report(request=request)
            try:
                self._carry_out(request, report)
            except (DatabaseError, InterfaceError, OSError) as error:
                report.error = error
                self._is_outage = self._is_outage or is_outage(error)
            except Exception as error:
                logger.exception("Request to the database failed")
                report.error = error
            if report.error is not None:
                self._session.close()
                close_quietly(project_connection())
            self._reports.put(report)
            self._wake()
        self._session.end()
        close_quietly(project_connection())

    def _carry_out(self, request: DatabaseRequest, report: Report) -> None:
        session = self._session
        session.open()
        if self._is_outage:
            self._is_outage = False
            self._duties.spare(time.monotonic())
        if request.held is not None:
            report.unknown_leases = session.unknown_leases(request.held)
        if request.unsure:
            report.ended, report.running = session.resolve(request.unsure)
        report.claimed_at = time.monotonic()
        if request.writes:
            report.recorded, report.claimed = session.record_and_claim(
                request.outcomes, request.lines, request.notes,
                want=request.want, unknown=request.unknown,
            )  # fmt: skip
        elif request.want:
            report.claimed = session.look_and_claim(request.want, request.unknown)
        report.has_exchanged = True
        left = request.want - len(report.claimed)
        if request.is_busy:
            session.declare_idle(False)
        elif left > 0 and request.may_sleep and session.declare_idle(True):
            # What was committed before the declaration was not announced: look once more.
            report.claimed += session.look_and_claim(left, request.unknown)
        if request.with_duties:
            report.has_ready = self._duties.step(session.connection, time.monotonic())
            report.duties_at = self._duties.next_at
