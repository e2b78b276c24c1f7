"""Decide the outcomes of attempts for which no child reports one."""

from __future__ import annotations

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.retries import class_path
from taskqueue.declarations import snapshots
from taskqueue.exceptions import AttemptLost, DeadlineExceeded, MemoryExceeded, TaskTimeout
from taskqueue.worker.jobs import Job
from taskqueue.worker.outcomes import over_memory, over_time


def unstarted(job: Job, now: float) -> Outcome:
    """The body never started: the task is handed back, or stopped if that was requested."""
    if job.stop_reason is not None:
        return stopped(job, now)
    return Outcome(job.lease_id, OutcomeKind.UNSTARTED, now)


def interrupted(job: Job, now: float) -> Outcome:
    """A shutdown killed the body: the task runs again, unless its stop was requested."""
    if job.stop_reason is not None:
        return stopped(job, now)
    return _ended(job, OutcomeKind.RETURNED, now, "The worker was shut down.")


def stopped(job: Job, now: float) -> Outcome:
    """The task was stopped on request."""
    return _ended(job, OutcomeKind.STOPPED, now, job.stop_reason or "")


def lost(job: Job, now: float, *, end: str) -> Outcome:
    """The child that ran it died: a crash."""
    return _ended(job, OutcomeKind.LOST, now, f"The child process died: {end}.", AttemptLost)


def fenced(job: Job, now: float) -> Outcome:
    """The worker could not renew the lease, and its child was ended in time: not a crash."""
    message = "The worker could not renew its leases in time, and stopped its bodies."
    return _ended(job, OutcomeKind.FENCED, now, message, AttemptLost)


def unconfirmed(success: Outcome) -> Outcome:
    """The COMMIT of its body got no answer, and did not take effect: not a crash."""
    return success._replace(
        kind=OutcomeKind.FENCED,
        error_class=class_path(AttemptLost),
        error_message="The database went away at the body's COMMIT, which did not take effect.",
    )


def time_over(job: Job, now: float) -> Outcome:
    """It ran past its timeout or deadline, and did not end when interrupted."""
    if job.deadline_at is not None and job.limit_at == job.deadline_at:
        message = "The deadline passed while the body ran."
        return _ended(job, OutcomeKind.FAILED, now, message, DeadlineExceeded)._replace(
            retryable=False
        )
    message = (
        f"{over_time(job.timeout or 0.0, renews=job.renews_limit).rstrip('.')}, "
        "and did not stop when it was interrupted."
    )
    return _failed(job, now, message, TaskTimeout)


def over_memory_limit(job: Job, now: float) -> Outcome:
    """Its process used more memory than allowed, and it did not end when interrupted."""
    message = (
        f"{over_memory(job.max_memory).rstrip('.')}, and did not stop when it was interrupted."
    )
    return _failed(job, now, message, MemoryExceeded)


def _failed(job: Job, now: float, message: str, error: type[BaseException]) -> Outcome:
    """No child is left to ask, so the stored options decide."""
    is_snoozed = snapshots.snoozes(job.snapshot, error)
    kind = OutcomeKind.SNOOZED if is_snoozed else OutcomeKind.FAILED
    return _ended(job, kind, now, message, error)._replace(
        delay=snapshots.delay(job.snapshot, job.failures + 1),
        retryable=is_snoozed or snapshots.retries(job.snapshot, error),
    )


def _ended(
    job: Job,
    kind: OutcomeKind,
    now: float,
    message: str,
    error: type[BaseException] | None = None,
) -> Outcome:
    return Outcome(
        job.lease_id,
        kind,
        now,
        error_class=class_path(error) if error else "",
        error_message=message,
        started=job.started_at,
    )
