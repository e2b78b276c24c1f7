"""Receive frames from children: outcomes, progress, log lines, returned orders, and ends."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.worker import endings, frames
from taskqueue.worker.children import ChildProcess
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.jobs import Job
from taskqueue.worker.outcomes import succeeded
from taskqueue.worker.unlogged import note_logged

logger = logging.getLogger("taskqueue.worker")


class Receiver:
    """Handles the frames of children, and has the outcomes of jobs recorded."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._pool = dispatcher.pool
        self._pending = dispatcher.pending
        self._prefetch = dispatcher.prefetch

    def receive(
        self, child: ChildProcess, now: float, forget: Callable[[socket.socket], None]
    ) -> None:
        """Handle the frames of a child, or its end: then its socket is removed and closed."""
        received, is_gone = child.receive()
        for frame in received:
            self._take_in(child, frame, now)
        if is_gone:
            forget(child.socket)
            self._bury(child, now)

    def _take_in(self, child: ChildProcess, frame: frames.Frame, now: float) -> None:
        match frame[0]:
            case frames.SUCCEEDED:
                self._take_successes(child, succeeded(frame[1]), now)
            case frames.OUTCOME:
                self._finish(child, Outcome(*frame[1]), now)
            case frames.RECORDED:
                outcome = Outcome(*frame[1])
                if self._take_from(child, outcome, now):
                    self._pending.recorded.append(outcome)
            case frames.UNSURE:
                outcome = Outcome(*frame[1])
                if self._take_from(child, outcome, now):
                    self._pending.unsure[outcome.lease_id] = outcome
            case frames.PROGRESS:
                self._pending.progress.update(frame[1])
                for lease_id in frame[1]:
                    if (job := child.held.get(lease_id)) is not None:
                        job.progressed(now)
            case frames.LINES:
                self._pending.lines.extend(frame[1])
            case frames.RECALLED:
                self._dispatcher.take_back(child.recalled(frame[1], now))
            case frames.PER_SLOT:
                child.places.allow(frame[1])
            case frames.EXCLUDED:
                self._dispatcher.state.limits.excluded = frozenset(frame[1])
            case frames.READY:
                self._pool.on_started(child, frame[1])
            case frames.SYNCED:
                self._pool.has_declared = True
            case frames.OVERWEIGHT:
                child.is_condemned = True
                child.recall()
            case frames.BROKEN:
                child.trouble = frame[1]

    def _take_from(self, child: ChildProcess, outcome: Outcome, now: float) -> Job | None:
        """Return the job of an outcome, which its child no longer has."""
        job = child.take_back(outcome.lease_id, now)
        if job is not None and not job.is_over and outcome.started is not None:
            self._prefetch.learn(outcome.ended - outcome.started)
            self._pending.unreached.reached(job.name)
        return job

    def _take_successes(self, child: ChildProcess, outcomes: list[Outcome], now: float) -> None:
        """Handle successes without a value, which most outcomes are."""
        jobs = child.take_back_all([outcome.lease_id for outcome in outcomes], now)
        ends = [
            (job, outcome)
            for job, outcome in zip(jobs, outcomes, strict=True)
            if job is not None and not job.is_over
        ]
        # The third and the fourth field of an outcome: its end and its start.
        self._prefetch.learn_all([outcome[2] - outcome[3] for _, outcome in ends])  # type: ignore[operator]
        reached = self._pending.unreached.reached
        for job, outcome in ends:
            reached(job.name)
            if job.stop_reason:
                self._end(job, outcome, now)
            else:
                self._pending.outcomes.append(outcome)

    def _finish(self, child: ChildProcess, outcome: Outcome, now: float) -> None:
        job = self._take_from(child, outcome, now)
        if job is not None and not job.is_over:
            self._end(job, outcome, now)

    def _end(self, job: Job, outcome: Outcome, now: float) -> None:
        """Have the outcome of a job recorded, as changed by a stop that was requested."""
        if outcome.kind == "succeeded" and not job.stop_reason:
            self._pending.outcomes.append(outcome)
            return
        note_logged(job, outcome)
        if outcome.kind == OutcomeKind.PARKED:
            if self._pending.learn_unknown(job.name, now):
                logger.warning(
                    "Task parked for a worker that knows it task=%s id=%s reason=%s",
                    one_line(job.name), job.task_id, one_line(outcome.error_message),
                )  # fmt: skip
        elif outcome.kind == OutcomeKind.FENCED and outcome.delay:
            self._pending.unreached.begin(
                job.name, outcome.error_message, shortest=outcome.delay, now=now
            )
        elif job.stop_reason and outcome.kind in (OutcomeKind.SUCCEEDED, OutcomeKind.RETURNED):
            # The stop was seen: the success no longer counts, and an atomic body was rolled back.
            outcome = outcome._replace(
                kind=OutcomeKind.STOPPED, return_value=None, error_message=""
            )
        if outcome.kind == OutcomeKind.STOPPED and job.stop_reason and not outcome.error_message:
            outcome = outcome._replace(error_message=job.stop_reason)
        self._pending.outcomes.append(outcome)

    def _bury(self, child: ChildProcess, now: float) -> None:
        """Remove a child that is gone: its running jobs are lost, its waiting ones go to others."""
        running = [job for job in child.running() if not job.is_over]
        is_fenced = now >= child.deadline.at and not child.is_killed
        end = self._pool.bury(child, running, now)
        self._pending.outcomes += [
            endings.fenced(job, now) if is_fenced else endings.lost(job, now, end=end)
            for job in running
        ]
        self._dispatcher.take_back(child.waiting())
