"""How attempts end that no child reports: the parent's own verdicts."""

from __future__ import annotations

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.core.retries import class_path
from taskqueue.declarations import snapshots
from taskqueue.exceptions import AttemptLost, DeadlineExceeded, TaskTimeout
from taskqueue.worker.jobs import Job


def unstarted(job: Job, now: float) -> Outcome:
    """Its body never started: handed back, or stopped if somebody asked for that."""
    if job.stop_reason is not None:
        return Outcome(job.lease_id, OutcomeKind.STOPPED, now, error_message=job.stop_reason)
    return Outcome(job.lease_id, OutcomeKind.UNSTARTED, now)


def interrupted(job: Job, now: float) -> Outcome:
    """Its body was killed by a shutdown: it runs again, unless somebody asked it to stop."""
    if job.stop_reason is not None:
        return stopped(job, now)
    return Outcome(
        job.lease_id,
        OutcomeKind.RETURNED,
        now,
        error_message="The worker was shut down.",
        started=job.started_at,
    )


def stopped(job: Job, now: float) -> Outcome:
    """Somebody asked it to stop."""
    return Outcome(
        job.lease_id,
        OutcomeKind.STOPPED,
        now,
        error_message=job.stop_reason or "",
        started=job.started_at,
    )


def lost(job: Job, now: float, *, end: str) -> Outcome:
    """The child that ran it died: a crash."""
    return Outcome(
        job.lease_id,
        OutcomeKind.LOST,
        now,
        error_class=class_path(AttemptLost),
        error_message=f"The child process died: {end}.",
        started=job.started_at,
    )


def fenced(job: Job, now: float) -> Outcome:
    """The worker could not renew the lease, and its child ended itself in time: no crash."""
    return Outcome(
        job.lease_id,
        OutcomeKind.FENCED,
        now,
        error_class=class_path(AttemptLost),
        error_message="The worker could not renew its leases in time, and stopped its bodies.",
        started=job.started_at,
    )


def unconfirmed(lease_id: int, started_at: float, ended_at: float) -> Outcome:
    """Its body's COMMIT got no answer, and did not take effect: no crash."""
    return Outcome(
        lease_id,
        OutcomeKind.FENCED,
        ended_at,
        error_class=class_path(AttemptLost),
        error_message="The database went away at the body's COMMIT, which did not take effect.",
        started=started_at,
    )


def time_over(job: Job, now: float) -> Outcome:
    """It ran past its timeout or deadline, and did not stop.

    No child is left to ask, so the stored options decide.
    """
    at_deadline = job.deadline_at is not None and job.limit_at == job.deadline_at
    error = DeadlineExceeded if at_deadline else TaskTimeout
    message = "The deadline passed while the body ran."
    if not at_deadline:
        message = (
            f"The body ran for longer than its timeout of {job.timeout:g} s, "
            "and did not stop when it was interrupted."
        )
    return Outcome(
        job.lease_id,
        OutcomeKind.FAILED,
        now,
        error_class=class_path(error),
        error_message=message,
        delay=snapshots.delay(job.snapshot, job.failures + 1),
        retryable=not at_deadline and snapshots.retries(job.snapshot, error),
        started=job.started_at,
    )
