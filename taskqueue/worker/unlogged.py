"""Log the failures that no child has logged, once they are recorded."""

from __future__ import annotations

from taskqueue.core.outcomes import EFFECTS, Outcome, OutcomeKind, is_final
from taskqueue.core.states import TaskStatus
from taskqueue.engine.failures import NOT_RETRIED, Failure, log_failed, log_retried
from taskqueue.worker.jobs import Job


def note_logged(job: Job, outcome: Outcome) -> None:
    """Remember, in the parent, how the child has logged a failure that it reports."""
    if outcome.kind == OutcomeKind.FAILED:
        has_ended = is_final(outcome, failures=job.failures, max_attempts=job.max_attempts)
        job.logged_as = TaskStatus.FAILED if has_ended else TaskStatus.RETRYING


def log_unlogged(job: Job, outcome: Outcome, status: str | None) -> None:
    """Log a failure that no child has logged, or that the database judged more severely."""
    if not EFFECTS[outcome.kind].limited_by:
        return
    if status == TaskStatus.FAILED and job.logged_as != TaskStatus.FAILED:
        log = log_failed
    elif status not in NOT_RETRIED and not job.logged_as and outcome.kind != OutcomeKind.PARKED:
        log = log_retried
    else:
        return
    attempt = job.task_id, job.name, job.order[3], job.queue_name
    log(Failure(*attempt, outcome.error_class, outcome.error_message))
