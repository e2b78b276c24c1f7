"""Stop running bodies: ask them, then interrupt them, then kill their process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Outcome
from taskqueue.worker import endings, frames
from taskqueue.worker.children import ChildProcess
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.jobs import Job
from taskqueue.worker.memory import LOOK_INTERVAL, resident_bytes
from taskqueue.worker.outcomes import over_memory

logger = logging.getLogger("taskqueue.worker")

LEASE_ENDED = "The lease has ended."
Ending = Callable[[Job, float], Outcome]
Step = Callable[[ChildProcess, Job, float], None]


class Stopper:
    """Carries out stops and time limits.

    A body that is asked to stop has its `stop_grace`, or `STOP_GRACE`; then it is interrupted, and
    after its `kill_grace`, or `KILL_GRACE`, its child is killed. A thread cannot be killed: there
    the lease ends, and the slot stays busy. At its own time limit a body is interrupted by its
    child; if that does not help, it is ended here.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        settings = dispatcher.state.settings
        self._dispatcher = dispatcher
        self._pool, self._pending = dispatcher.pool, dispatcher.pending
        self._stop_grace = settings.STOP_GRACE.total_seconds()
        self._kill_grace = settings.KILL_GRACE.total_seconds()

    def ask(self, lease_id: int, reason: str, now: float) -> None:
        """Begin to stop a job: an unstarted one ends, a running body is asked."""
        place = self._dispatcher.find(lease_id)
        if place is None or place[1].stop_reason is not None:
            return
        child, job = place
        job.stop_reason = reason
        job.asked_at = now
        if child is None:
            self._dispatcher.remove(job)
            self._dispatcher.hand_back(job)
            return
        # A job that waits in the child is handed back from there.
        child.send((frames.RECALL, [lease_id]))
        child.send((frames.ASK, lease_id, reason))

    def drop(self, lease_id: int) -> None:
        """End the body of a lease that has ended elsewhere; nothing is written for it."""
        place = self._dispatcher.find(lease_id)
        if place is None or place[1].is_over:
            return
        child, job = place
        logger.warning("Lease ended elsewhere task=%s lease=%s", job.task_id, lease_id)
        job.is_over = True
        if child is None:
            self._dispatcher.remove(job)
        elif job.started_at is None:
            child.send((frames.RECALL, [lease_id]))
        elif not self._pool.can_kill:
            child.send((frames.INTERRUPT, lease_id, frames.STOPPED, LEASE_ENDED))
        elif child.places.running == 1:
            child.kill()

    def enforce(self, now: float) -> None:
        """Interrupt and end bodies whose time is over."""
        for child in list(self._pool.children):
            for job in list(child.running()):
                if child.is_killed:
                    break
                if not job.is_over:
                    self._enforce(child, job, now)
                elif self._pool.can_kill:
                    self._cut(child, job, now)

    def _enforce(self, child: ChildProcess, job: Job, now: float) -> None:
        for due_at, step in self._steps(job):
            if now >= due_at:
                step(child, job, now)
                return

    def _interrupt(self, child: ChildProcess, job: Job, now: float) -> None:
        job.interrupted_at = now
        child.send((frames.INTERRUPT, job.lease_id, frames.STOPPED, job.stop_reason))

    def _check_memory(self, child: ChildProcess, job: Job, now: float) -> None:
        """Interrupt a body whose process uses too much memory; its child is replaced."""
        job.check_memory_at = now + LOOK_INTERVAL
        size = resident_bytes(child.process.pid)
        if size is None or size <= (job.max_memory or 0) * 1e6:
            return
        job.check_memory_at, job.over_memory_at = None, now
        child.send((frames.INTERRUPT, job.lease_id, frames.MEMORY, over_memory(job.max_memory)))
        child.is_condemned = True
        child.recall()

    def _cut(self, child: ChildProcess, job: Job, now: float) -> None:
        """End a body whose lease has ended; it may have begun while it was being recalled."""
        if child.places.running == 1:
            child.kill()
        elif job.interrupted_at is None:
            # Other bodies share its slot.
            job.interrupted_at = now
            child.send((frames.INTERRUPT, job.lease_id, frames.STOPPED, LEASE_ENDED))
        elif now >= job.interrupted_at + self._kill_grace_of(job):
            child.kill()

    def next_limit(self) -> float | None:
        """Return when `enforce` is needed next."""
        children = [child for child in self._pool.children if not child.is_killed]
        jobs = (job for child in children for job in child.running())
        return min((due_at for job in jobs for due_at, _ in self._steps(job)), default=None)

    def _steps(self, job: Job) -> Iterator[tuple[float, Step]]:
        """Yield when to end a running body, and how, the most severe way first."""
        if job.is_over:
            if job.interrupted_at is not None and self._pool.can_kill:
                yield job.interrupted_at + self._kill_grace_of(job), self._end(endings.stopped)
            return
        for since, ending in (
            (job.limit_at, endings.time_over),
            (job.over_memory_at, endings.over_memory_limit),
            (job.interrupted_at, endings.stopped),
        ):
            if since is not None:
                yield since + self._kill_grace_of(job), self._end(ending)
        if job.asked_at is not None and job.interrupted_at is None:
            grace: float = job.snapshot.get("stop_grace", self._stop_grace)
            yield job.asked_at + grace, self._interrupt
        if job.check_memory_at is not None and self._pool.can_kill:
            yield job.check_memory_at, self._check_memory

    def _kill_grace_of(self, job: Job) -> float:
        grace: float = job.snapshot.get("kill_grace", self._kill_grace)
        return grace

    def _end(self, ending: Ending) -> Step:
        """Return the step that ends a body which did not end when it was interrupted."""
        return lambda child, job, now: self._end_with(child, job, ending(job, now))

    def _end_with(self, child: ChildProcess, job: Job, outcome: Outcome) -> None:
        logger.warning(
            "Body did not stop task=%s id=%s outcome=%s",
            one_line(job.name), job.task_id, outcome.kind,
        )  # fmt: skip
        self._pending.outcomes.append(outcome)
        job.is_over = True
        if self._pool.can_kill:
            child.kill()
        else:
            # Tell the body, so that exceptions that it raises later do not count as a failure.
            child.send((frames.ASK, job.lease_id, outcome.error_message))
            child.leave_stuck(job.lease_id)
            child.recall()
