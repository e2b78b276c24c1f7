"""Errands to the database, run in a thread of their own, one at a time.

The main thread hands out an errand and goes on serving children: limits are kept and crashes seen
while the database takes its time, or is away.
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
from taskqueue.engine.rows import Claimed, LogLine, Note
from taskqueue.engine.transient_errors import is_outage
from taskqueue.worker.duties import Duties
from taskqueue.worker.record_and_claim import Intake

logger = logging.getLogger("taskqueue.worker")


@dataclass(frozen=True, kw_only=True)
class Errand:
    """What to write, how much to claim, and what else to look after."""

    outcomes: list[Outcome] = field(default_factory=list)
    lines: list[LogLine] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    want: int = 0
    unknown: list[str] = field(default_factory=list)
    """Names that this worker cannot run, and does not claim."""
    unsure: list[int] = field(default_factory=list)
    """Leases whose COMMIT got no answer."""
    held: list[int] | None = None
    """The leases that the worker knows, where it is to hand back those that it does not."""
    is_busy: bool = False
    """Whether the worker has been claiming without a pause, so that nobody need wake it."""
    may_sleep: bool = True
    with_duties: bool = False

    @property
    def writes(self) -> bool:
        """Whether there is something to write."""
        return bool(self.outcomes or self.lines or self.notes)


@dataclass(kw_only=True)
class Report:
    """What came of an errand, as far as it got."""

    errand: Errand
    has_exchanged: bool = False
    recorded: dict[int, Recorded] = field(default_factory=dict)
    claimed: list[Claimed] = field(default_factory=list)
    claimed_at: float = 0.0
    ended: list[int] = field(default_factory=list)
    """Of the unsure ones, those that had ended."""
    running: list[int] = field(default_factory=list)
    """Of the unsure ones, those that had not."""
    unknown_leases: list[int] = field(default_factory=list)
    has_ready: bool | None = None
    """What the duties saw; None: they were not served."""
    error: Exception | None = None


class Errands:
    """Runs errands in a thread, and rings when a report is there."""

    def __init__(self, intake: Intake, duties: Duties, ring: Callable[[], None]) -> None:
        self._intake = intake
        self._duties = duties
        self._ring = ring
        self._errands: SimpleQueue[Errand | None] = SimpleQueue()
        self._reports: SimpleQueue[Report] = SimpleQueue()
        self.under_way: Errand | None = None
        self._is_outage = False
        """Whether the database was away when this thread last asked it."""
        self.thread = threading.Thread(target=self._run, name="taskqueue-errands", daemon=True)
        self.thread.start()

    def send(self, errand: Errand) -> None:
        """Begin an errand; the one before must have been reported."""
        self.under_way = errand
        self._errands.put(errand)

    def report(self) -> Report | None:
        """The report of the errand under way, once it is there."""
        if self.under_way is None or self._reports.empty():
            return None
        self.under_way = None
        return self._reports.get()

    def stop(self) -> None:
        """End the thread, unless the database keeps it."""
        self._errands.put(None)
        self.thread.join(timeout=5)

    def _run(self) -> None:
        while (errand := self._errands.get()) is not None:
            report = Report(errand=errand)
            try:
                self._do(errand, report)
            except (DatabaseError, InterfaceError, OSError) as error:
                report.error = error
                self._is_outage = self._is_outage or is_outage(error)
            except Exception as error:
                logger.exception("Errand failed")
                report.error = error
            if report.error is not None:
                self._intake.close()
                _close_project_connection()
            self._reports.put(report)
            self._ring()
        self._intake.end()
        _close_project_connection()

    def _do(self, errand: Errand, report: Report) -> None:
        intake = self._intake
        intake.open()
        if self._is_outage:
            self._is_outage = False
            self._duties.spare(time.monotonic())
        if errand.held is not None:
            report.unknown_leases = intake.unknown_leases(errand.held)
        if errand.unsure:
            report.ended, report.running = intake.resolve(errand.unsure)
        report.claimed_at = time.monotonic()
        if errand.writes:
            report.recorded, report.claimed = intake.exchange(
                errand.outcomes, errand.lines, errand.notes, want=errand.want,
                unknown=errand.unknown,
            )  # fmt: skip
        elif errand.want:
            report.claimed = intake.look_and_claim(errand.want, errand.unknown)
        report.has_exchanged = True
        if errand.is_busy:
            intake.declare_idle(False)
        elif len(report.claimed) < errand.want and errand.may_sleep and intake.declare_idle(True):
            # What was committed before the declaration was not announced: look once more.
            left = errand.want - len(report.claimed)
            report.claimed += intake.look_and_claim(left, errand.unknown)
        if errand.with_duties:
            report.has_ready = self._duties.step(intake.connection, time.monotonic())


def _close_project_connection() -> None:
    try:
        project_connection().close()
    except Exception as error:
        logger.debug("Connection did not close error=%s", error)
