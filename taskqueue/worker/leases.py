"""The leases that a worker believes it holds."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import SUCCESS, Outcome, OutcomeKind, Recorded
from taskqueue.core.states import WAITING, LeaseStatus, TaskStatus
from taskqueue.engine.rows import Claimed, LogLine, Note
from taskqueue.engine.tally import SubjectLike
from taskqueue.worker.frames import Line, Said
from taskqueue.worker.jobs import Job
from taskqueue.worker.meter import ProgressLine
from taskqueue.worker.state import WorkerState
from taskqueue.worker.unlogged import log_unlogged
from taskqueue.worker.unreached import Unreached

logger = logging.getLogger("taskqueue.worker")

RECORDED_ITSELF = Recorded(TaskStatus.SUCCEEDED, LeaseStatus.SUCCEEDED)
NOTE_AFTER = 0.1  # Seconds after which the start of a running body is written.


class Leases:
    """Adds leases as tasks are claimed, and drops them as their ends are recorded.

    The main thread changes them; the heartbeat, which renews them, and the database thread read
    them.
    """

    def __init__(self, state: WorkerState) -> None:
        self.held: dict[int, Job] = {}
        self._lease_seconds = state.lease_seconds
        self._meter = state.meter
        self._progress = ProgressLine() if state.options.show_progress else None

    def subject_of(self, lease_id: int) -> SubjectLike | None:
        """Return the task of a lease, if it is known here."""
        return self.held.get(lease_id)

    def take(self, claimed: list[Claimed], claimed_at: float) -> list[Job]:
        """Add claimed tasks as jobs."""
        jobs = [Job(row, claimed_at, usual_lease=self._lease_seconds) for row in claimed]
        self.held.update((job.lease_id, job) for job in jobs)
        return jobs

    def drop(self, lease_id: int) -> None:
        """Drop a lease that has ended elsewhere."""
        self.held.pop(lease_id, None)

    def settle(
        self, outcomes: list[Outcome], recorded: Mapping[int, Recorded], now: float
    ) -> float:
        """Drop leases whose outcomes were recorded. Return when the duties must look next."""
        look_at = math.inf
        is_debug = logger.isEnabledFor(logging.DEBUG)
        if self._progress:
            self._progress.count(row.task_status for row in recorded.values())
        successes = []
        for outcome in outcomes:
            job = self.held.pop(outcome[0], None)
            row = recorded.get(outcome[0])
            if _is_success(row) and job is not None and not (job.is_scheduled or is_debug):
                successes.append((job, outcome))
                continue
            status = row and row.task_status
            if row is not None and job is not None:
                self._meter.recorded(job, outcome, row)
            if status in WAITING:
                # The delay after a crash is in the task's row, where the duties find it.
                delay = 0.0 if outcome.kind == OutcomeKind.LOST else outcome.delay
                look_at = min(look_at, now + delay)
            elif job is not None and (job.is_scheduled or (job.is_step and row is RECORDED_ITSELF)):
                # The next run of its schedule may have waited for this end; so may its workflow, if
                # the recording thread was not told of the end.
                look_at = min(look_at, now)
            if job is not None and (is_debug or outcome.kind != "succeeded"):
                log_outcome(job, outcome, status)
        self._meter.succeeded(successes)
        return look_at

    def settle_recorded(self, outcomes: list[Outcome], now: float) -> float:
        """Drop leases whose successes were recorded by their bodies, as `settle` does."""
        rows = {outcome.lease_id: RECORDED_ITSELF for outcome in outcomes}
        look_at = self.settle(outcomes, rows, now)
        outcomes.clear()
        return look_at

    def end(self) -> None:
        """Complete the progress line."""
        if self._progress:
            self._progress.end()


def _is_success(row: Recorded | None) -> bool:
    """Return whether a task has succeeded, and the recording thread was told of it."""
    if row is SUCCESS:
        return True
    # By position, because this runs for every attempt of a step.
    return row is not None and row[2] is not None and row[0] == row[1] == SUCCESS[1]


def log_outcome(job: Job, outcome: Outcome, status: str | None) -> None:
    """Log a recorded outcome that no child has logged, or if each attempt is logged."""
    log_unlogged(job, outcome, status)
    # `Unreached` logs those that have a delay, but not each of them.
    if outcome.kind == OutcomeKind.FENCED and not outcome.delay:
        logger.warning(
            "Attempt ended without a renewed lease task=%s id=%s now=%s reason=%s",
            one_line(job.name), job.task_id, status or "ended before",
            one_line(outcome.error_message[:500]),
        )  # fmt: skip
    if outcome.kind != OutcomeKind.UNSTARTED and logger.isEnabledFor(logging.DEBUG):
        logger.debug(
            "Attempt ended task=%s id=%s attempt=%s outcome=%s now=%s seconds=%s",
            one_line(job.name), job.task_id, job.order[3], outcome.kind, status or "ended before",
            "-" if outcome.started is None else f"{outcome.ended - outcome.started:.3f}",
        )  # fmt: skip


class PendingWrites:
    """Outcomes, lines and progress to write, with times of this host's monotonic clock."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        # Outcomes that a child recorded itself, in an atomic body's transaction.
        self.recorded: list[Outcome] = []
        # Successes that may or may not have been committed, by lease.
        self.unsure: dict[int, Outcome] = {}
        # Names that no child here can run, and when that was found.
        self.unknown: dict[str, float] = {}
        self._logged_unknown: set[str] = set()
        self.unreached = Unreached()
        self.lines: list[Line] = []
        self.progress: dict[int, Said] = {}

    def take(self) -> tuple[list[Outcome], list[Line]]:
        """Return the outcomes, and the lines that must be written before them."""
        outcomes, self.outcomes = self.outcomes, []
        lines, self.lines = self.lines, []
        return outcomes, lines

    def next_note_at(self, running: Iterable[Job]) -> float:
        """Return when there is something to write about running bodies."""
        if self.lines or self.progress:
            return 0.0
        starts = (job.started_at for job in running if not job.noted)
        return min((at for at in starts if at is not None), default=math.inf) + NOTE_AFTER

    def unknown_names(self, now: float, *, limit: float) -> list[str]:
        """Return names not to claim: found unknown less than `limit` seconds ago, or unreached."""
        self.unknown = {
            name: found_at for name, found_at in self.unknown.items() if now - found_at <= limit
        }
        return [*self.unknown, *self.unreached.names()]

    def learn_unknown(self, name: str, now: float) -> bool:
        """Remember that no child here can run that name. Return whether that is new."""
        self.unknown[name] = now
        is_news = name not in self._logged_unknown
        self._logged_unknown.add(name)
        return is_news

    def take_notes(self, running: Iterable[Job], now: float) -> list[Note]:
        """Return progress, and the starts of bodies that have run for a while."""
        progress, self.progress = self.progress, {}
        notes = {
            lease_id: Note(lease_id, None, percent, message, detail)
            for lease_id, (percent, message, detail) in progress.items()
        }
        for job in running:
            if job.started_at is None or job.noted:
                continue
            if job.started_at <= now - NOTE_AFTER or job.lease_id in notes:
                job.noted = True
                note = notes.get(job.lease_id, Note(job.lease_id, None, None, None))
                notes[job.lease_id] = note._replace(started=now - job.started_at)
        return list(notes.values())

    def put_back(self, outcomes: list[Outcome], lines: list[Line], notes: list[Note]) -> None:
        """Keep what was taken but could not be written for the next time."""
        self.outcomes = outcomes + self.outcomes
        self.lines = lines + self.lines
        for note in notes:
            if note.progress is not None:
                said = (note.progress, note.message or "", note.detail)
                self.progress.setdefault(note.lease_id, said)


def aged_lines(lines: list[Line], now: float) -> list[LogLine]:
    """Return captured lines with their ages."""
    return [LogLine(line[0], now - line[1], *line[2:]) for line in lines]
