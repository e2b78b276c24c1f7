"""The ledger: what this worker holds, and when to turn to the database about it."""

from __future__ import annotations

import logging
import random

from taskqueue.conf import Settings
from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.states import WAITING
from taskqueue.engine.transient_errors import is_busy
from taskqueue.worker.database_thread import Errand, Errands, Report
from taskqueue.worker.duties import Duties
from taskqueue.worker.endings import unconfirmed
from taskqueue.worker.jobs import Job
from taskqueue.worker.logs import log_ended, log_unlogged
from taskqueue.worker.options import WorkerOptions
from taskqueue.worker.pool import Pool
from taskqueue.worker.record_and_claim import Intake
from taskqueue.worker.summary import ProgressLine

logger = logging.getLogger("taskqueue.worker")

LINGER = 0.005
"""Seconds for which a first outcome waits for others, while the children have work."""
NOTE_AFTER = 0.1
"""Seconds after which the start of a running body is written."""
NOTE_INTERVAL = 0.25
FORGET_UNKNOWN = 3
"""How many `PARK_DELAY`s a worker leaves out a name that it found unknown."""
BUSY_CLAIMS = 50
"""After that many full claims in a row, enqueues need not wake this worker."""
POLL_LISTENING, POLL_BLIND, POLL_SQLITE = 2.0, 1.0, 0.25
SHORTEST_RETRY, LONGEST_RETRY = 0.1, 2.0
"""Seconds between two tries to reach a database that is away."""
UNSURE_PAUSE = 0.2
"""Seconds between two looks at whether a COMMIT without an answer took effect."""
LONGEST_SLEEP = 5.0


class Coordinator:
    """Sends one errand at a time, and enters what it reports."""

    def __init__(
        self,
        options: WorkerOptions,
        settings: Settings,
        *,
        pool: Pool,
        intake: Intake,
        duties: Duties,
        errands: Errands,
    ) -> None:
        self._options = options
        self._lease_seconds = settings.LEASE_DURATION.total_seconds()
        self._unknown_limit = FORGET_UNKNOWN * settings.PARK_DELAY.total_seconds()
        self._pool = pool
        self._findings = pool.pending
        self._intake = intake
        self._duties = duties
        self._errands = errands
        self.held: dict[int, Job] = {}
        """The leases that this worker believes it holds; the heartbeat renews them."""
        self.is_away = False
        """Whether the database has been in trouble since the last errand."""
        self._is_dry = False
        """Whether the last claim found nothing."""
        self._is_promoted = False
        """Whether what was recorded last has been looked through for what is due again."""
        self._may_claim = True
        self._is_to_reconcile = False
        self._full_claims = 0
        self._retry_at = 0.0
        self._retry_pause = SHORTEST_RETRY
        self._note_at = 0.0
        self._sent_at = 0.0
        self._progress = ProgressLine() if options.show_progress else None

    @property
    def is_waiting(self) -> bool:
        """Whether an errand is under way."""
        return self._errands.under_way is not None

    @property
    def is_settled(self) -> bool:
        """Whether nothing runs, and nothing is left to write."""
        return not (self.has_work or self.is_away)

    @property
    def has_work(self) -> bool:
        """Whether something runs, or is left to write."""
        pending = self._findings
        return bool(self._pool.held or pending.outcomes or pending.unsure)

    @property
    def is_drained(self) -> bool:
        """Whether there is nothing to do now."""
        pool = self._pool
        is_ready = pool.is_ready and pool.has_declared
        return self.is_settled and self._is_dry and self._is_promoted and is_ready

    def end(self) -> None:
        """Say the last of the progress line."""
        if self._progress:
            self._progress.end()

    def is_reported(self, lease_id: int) -> bool:
        """Whether the outcome of a lease is on its way, so that its end is no surprise."""
        under_way = self._errands.under_way
        sent = under_way.outcomes if under_way else []
        return lease_id in self._findings.unsure or any(
            outcome.lease_id == lease_id for outcome in [*self._findings.outcomes, *sent]
        )

    def hear(self) -> None:
        """Something was enqueued; from whichever thread uses the connection."""
        self._may_claim = True
        if self._full_claims == 0:
            # It may be due later: have the duties look when.
            self._duties.next_at = 0.0

    def enter_recorded(self) -> None:
        """Atomic bodies have recorded their success themselves."""
        for lease_id in self._findings.recorded:
            job = self.held.pop(lease_id, None)
            if job is not None and job.is_scheduled:
                self._duties.next_at = 0.0
            if job is not None and self._progress:
                self._progress.count("succeeded")
        self._findings.recorded.clear()

    # Sending

    def is_due(self, now: float) -> bool:
        """Whether there is a reason to send an errand."""
        return not self.is_waiting and now >= self.next_at(now)

    def next_at(self, now: float) -> float:
        """When an errand is due, if nothing happens before."""
        pending, pool = self._findings, self._pool
        if self.is_away:
            return self._retry_at
        if self._is_to_reconcile:
            return now
        if pending.outcomes:
            in_children = sum(len(child.held) for child in pool.children)
            enough = len(pending.outcomes) >= in_children
            return now if enough else pending.outcomes[0].ended + LINGER
        if self._may_claim and pool.wanted(now) > 0:
            return now
        moments = [now + LONGEST_SLEEP]
        if pending.unsure:
            moments.append(self._sent_at + UNSURE_PAUSE)
        if not pool.is_closing:
            moments.append(self._duties.next_at)
        if pending.has_reports:
            moments.append(self._note_at)
        unnoted = [
            job.started_at + NOTE_AFTER
            for job in pool.running()
            if not job.noted and job.started_at is not None
        ]
        if unnoted:
            moments.append(max(self._note_at, min(unnoted)))
        return min(moments)

    def send(self, now: float) -> None:
        """Send an errand with all that there is to do."""
        pool, pending = self._pool, self._findings
        want = pool.wanted(now) if self._may_claim or pending.outcomes else 0
        if want:
            # What is heard from here on may be newer than what the claim sees.
            self._may_claim = False
        self._errands.send(
            Errand(
                outcomes=pending.take_outcomes(now),
                lines=pending.take_lines(now),
                notes=pending.take_notes(pool.running(), now, started_before=now - NOTE_AFTER),
                want=want,
                unknown=pending.unknown_names(now, limit=self._unknown_limit),
                unsure=list(pending.unsure),
                held=list(self.held) if self._is_to_reconcile else None,
                is_busy=self._full_claims >= BUSY_CLAIMS or pool.is_quiet,
                may_sleep=pool.takes_more,
                with_duties=now >= self._duties.next_at and not pool.is_closing,
            )
        )
        self._sent_at = now
        self._note_at = now + NOTE_INTERVAL

    # Entering what came of it

    def enter_report(self, now: float) -> list[Job] | None:
        """Enter the report of the errand under way, and give the jobs claimed; None: not yet."""
        report = self._errands.report()
        if report is None:
            return None
        jobs: list[Job] = []
        self._resolve(report, now)
        if report.has_exchanged:
            self._settle(report, now)
            jobs = self._claimed(report)
        else:
            errand = report.errand
            # The fence knows what had been recorded, and refuses it the second time.
            self._findings.put_back(errand.outcomes, errand.lines, errand.notes, self._sent_at)
            self._may_claim = True
        if report.error is None:
            self._on_answer()
        else:
            self.on_silence(report.error, now)
        self._enter_duties(report, now)
        return jobs

    def _resolve(self, report: Report, now: float) -> None:
        """Attempts whose COMMIT got no answer, and claims whose answer got lost."""
        pending = self._findings
        if report.errand.held is not None and report.error is None:
            self._is_to_reconcile = False
        for lease_id in report.unknown_leases:
            pending.outcomes.append(Outcome(lease_id, OutcomeKind.UNSTARTED, now))
        for lease_id in report.ended:
            del pending.unsure[lease_id]
            self.held.pop(lease_id, None)
        for lease_id in report.running:
            started_at, ended_at = pending.unsure.pop(lease_id)
            pending.outcomes.append(unconfirmed(lease_id, started_at, ended_at))

    def _settle(self, report: Report, now: float) -> None:
        log_debug = logger.isEnabledFor(logging.DEBUG)
        for outcome in report.errand.outcomes:
            job = self.held.pop(outcome.lease_id, None)
            recorded = report.recorded.get(outcome.lease_id)
            status = recorded and recorded.task_status
            if job is not None and recorded is not None:
                self._pool.meter.recorded(job, outcome, recorded, sent_at=self._sent_at)
            if self._progress and status is not None:
                self._progress.count(status)
            if status in WAITING:
                # The delay after a crash stands in its task: the duties look when that is over.
                delay = 0.0 if outcome.kind == OutcomeKind.LOST else outcome.delay
                self._duties.next_at = min(self._duties.next_at, now + delay)
            elif job is not None and job.is_scheduled:
                # The next run of its schedule may have to wait for this end.
                self._duties.next_at = now
            if outcome.kind == OutcomeKind.SUCCEEDED and not log_debug:
                continue
            if job is not None:
                _log_outcome(job, outcome, status)

    def _claimed(self, report: Report) -> list[Job]:
        lease = self._lease_seconds
        jobs = [Job(each, report.claimed_at, usual_lease=lease) for each in report.claimed]
        for job in jobs:
            self.held[job.lease_id] = job
        want = report.errand.want
        if want:
            self._pool.meter.claimed_batch(len(jobs))
        if want and len(jobs) < want:
            self._is_dry = not jobs
            self._full_claims = 0
        elif want:
            self._is_dry = False
            self._may_claim = True
            self._full_claims += 1
        return jobs

    def _enter_duties(self, report: Report, now: float) -> None:
        drains = self._options.drain
        if report.errand.writes:
            self._is_promoted = False
        if report.has_ready is not None:
            self._is_promoted = True
            self._may_claim = self._may_claim or report.has_ready
            self._is_dry = not report.has_ready or (self._is_dry and not drains)
        elif drains and self._is_dry and not self._is_promoted:
            self._duties.next_at = now
        if self._is_dry and not self.is_away:
            # The duties look for what is ready anyhow, so that a poll is theirs.
            self._duties.next_at = min(self._duties.next_at, now + self._poll_interval())

    def _on_answer(self) -> None:
        if self.is_away:
            self.is_away = False
            self._is_to_reconcile = True
            self._pool.suspect_connections()
            logger.info("Database back")
        self._retry_pause = SHORTEST_RETRY

    def on_silence(self, error: Exception, now: float) -> None:
        """The database is in trouble: outcomes are kept, and sent again after a growing pause."""
        if not self.is_away:
            self.is_away = True
            if is_busy(error):
                logger.warning(
                    "Database busy, somebody writes, outcomes are kept error=%s", one_line(error)
                )
            else:
                logger.error("Database away, outcomes are kept error=%s", one_line(error))
        self._retry_at = now + self._retry_pause * (0.5 + random.random())  # noqa: S311
        self._retry_pause = min(LONGEST_RETRY, self._retry_pause * 2)

    def _poll_interval(self) -> float:
        if self._options.poll_interval is not None:
            return self._options.poll_interval
        if self._intake.is_sqlite:
            return POLL_SQLITE
        return POLL_LISTENING if self._intake.listener else POLL_BLIND


def _log_outcome(job: Job, outcome: Outcome, status: str | None) -> None:
    log_unlogged(job, outcome, status)
    if outcome.kind == OutcomeKind.FENCED:
        logger.warning(
            "Attempt ended without a renewed lease task=%s id=%s now=%s reason=%s",
            one_line(job.name), job.task_id, status or "ended before",
            one_line(outcome.error_message[:500]),
        )  # fmt: skip
    if outcome.kind != OutcomeKind.UNSTARTED:
        seconds = None if outcome.started is None else outcome.started - outcome.ended
        log_ended(job, outcome.kind, status, seconds=seconds)
