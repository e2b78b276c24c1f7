"""Outcomes of attempts, their effects on lease and task, and the resulting transitions.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple

from taskqueue.core.states import FINISHED, PENDING, LeaseStatus, TaskStatus


class OutcomeKind(StrEnum):
    """The kind of an attempt's end; `EFFECTS` has its effects on the lease and the task."""

    # The body returned.
    SUCCEEDED = "succeeded"
    # The body raised: retried while failures remain and `retryable` holds.
    FAILED = "failed"
    # The body raised `RetryLater`: retried, always.
    RETRY_LATER = "retry_later"
    # The body raised `Snooze`: scheduled again, nothing counted.
    SNOOZED = "snoozed"
    # The body raised `Cancel`.
    CANCELLED = "cancelled"
    # Somebody asked the attempt to stop, and it did.
    STOPPED = "stopped"
    # The process that ran it died: a crash.
    LOST = "lost"
    # The worker could not renew its leases and killed its children: not a crash.
    FENCED = "fenced"
    # Its body was interrupted by a shutdown: it runs again, and nothing is counted.
    RETURNED = "returned"
    # Handed back before its body started, without a trace.
    UNSTARTED = "unstarted"
    # This worker has no definition of that name: the task waits for one that has.
    PARKED = "parked"


class Effect(NamedTuple):
    """The statuses that an outcome leads to, unless the attempt was asked to stop."""

    # None if the lease is withdrawn, as if it had never been claimed.
    lease_status: LeaseStatus | None
    # The status that the task gets, unless `limited_by` makes it failed.
    task_status: TaskStatus
    # The limit beyond which the task fails.
    limited_by: Literal["", "max_attempts", "max_crashes", "park_limit"] = ""
    # Whether the task waits for its `crash_delay`, not for the outcome's delay.
    counts_as: Literal["", "failure", "crash"] = ""

    def lease_status_of(self, *, stopping: bool) -> LeaseStatus | None:
        """Return the lease's status: stopped if that was requested, unless it was lost."""
        if stopping and self.lease_status is not LeaseStatus.LOST:
            return LeaseStatus.STOPPED
        return self.lease_status


# The table of outcomes, which the statements of both databases and the code for tasks of several
# workers follow.
#
# If a stop was requested, the task is cancelled instead.
EFFECTS: Mapping[str, Effect] = {
    OutcomeKind.SUCCEEDED: Effect(LeaseStatus.SUCCEEDED, TaskStatus.SUCCEEDED),
    OutcomeKind.FAILED: Effect(
        LeaseStatus.FAILED, TaskStatus.RETRYING, limited_by="max_attempts", counts_as="failure"
    ),
    OutcomeKind.RETRY_LATER: Effect(LeaseStatus.FAILED, TaskStatus.RETRYING, counts_as="failure"),
    OutcomeKind.SNOOZED: Effect(LeaseStatus.RETURNED, TaskStatus.SCHEDULED),
    OutcomeKind.CANCELLED: Effect(LeaseStatus.STOPPED, TaskStatus.CANCELLED),
    OutcomeKind.STOPPED: Effect(LeaseStatus.STOPPED, TaskStatus.CANCELLED),
    OutcomeKind.LOST: Effect(
        LeaseStatus.LOST, TaskStatus.RETRYING, limited_by="max_crashes", counts_as="crash"
    ),
    OutcomeKind.FENCED: Effect(LeaseStatus.LOST, TaskStatus.READY),
    OutcomeKind.RETURNED: Effect(LeaseStatus.RETURNED, TaskStatus.READY),
    OutcomeKind.UNSTARTED: Effect(None, TaskStatus.READY),
    OutcomeKind.PARKED: Effect(LeaseStatus.RETURNED, TaskStatus.SCHEDULED, limited_by="park_limit"),
}

# The kinds whose run times are kept, because nothing cut the body short.
WHOLE_RUNS = frozenset({OutcomeKind.SUCCEEDED, OutcomeKind.FAILED, OutcomeKind.RETRY_LATER})


class Outcome(NamedTuple):
    """The end of one attempt.

    Within a worker its times are moments of the host's monotonic clock; for the engine they are
    seconds before the outcome reaches it.
    """

    lease_id: int
    kind: str
    # When it ended; never left out, because the engine cannot know it otherwise.
    ended: float
    # When the body started; None if it did not.
    started: float | None = None
    # JSON text; None is null.
    return_value: str | None = None
    error_class: str = ""
    error_message: str = ""
    traceback: str = ""
    # Seconds until the next attempt, if there is one.
    delay: float = 0.0
    retryable: bool = True
    # For a succeeded task of a workflow: changes of the context, as JSON text, and whether it
    # returned a fan-out, whose calls are stored for the lease.
    updates: str | None = None
    has_fan: bool = False


class Recorded(NamedTuple):
    """The statuses that task and lease have once an outcome is recorded."""

    task_status: str
    # None if the lease was withdrawn.
    lease_status: str | None
    # The step of the workflow that must be notified, if the task has one.
    step_id: int | None = None


SUCCESS = Recorded(TaskStatus.SUCCEEDED, LeaseStatus.SUCCEEDED)


@lru_cache(maxsize=1024)
def success_of(step_id: int | None) -> Recorded:
    """Return the record of a success; successes of one step share it."""
    return SUCCESS if step_id is None else SUCCESS._replace(step_id=step_id)


def is_final(outcome: Outcome, *, failures: int, max_attempts: int) -> bool:
    """Return whether no attempt follows one that failed after this many earlier failures."""
    return not outcome.retryable or failures + 1 >= max_attempts


Statuses = frozenset[TaskStatus]


class Change(NamedTuple):
    """A cause, and the statuses between which it leads in a single step."""

    before: Statuses
    after: Statuses


READY = frozenset({TaskStatus.READY})
# The statuses after running: by an outcome, beyond a limit, or after a requested stop.
OUTCOMES = frozenset(
    {*(effect.task_status for effect in EFFECTS.values()), TaskStatus.FAILED, TaskStatus.CANCELLED}
)
CHANGES = {
    "claim": Change(READY, frozenset({TaskStatus.RUNNING})),
    "outcome": Change(frozenset({TaskStatus.RUNNING}), OUTCOMES),
    "become due": Change(PENDING - READY, READY),
    "postpone": Change(READY | {TaskStatus.BLOCKED}, frozenset({TaskStatus.SCHEDULED})),
    "pass its deadline": Change(PENDING, frozenset({TaskStatus.FAILED})),
    "cancel or expire": Change(PENDING, frozenset({TaskStatus.CANCELLED})),
    "retry": Change(FINISHED, READY),
    "retry its workflow": Change(FINISHED, frozenset({TaskStatus.BLOCKED})),
}
# The statuses that may follow each status. Only a manual retry leads out of a final one.
TRANSITIONS: dict[TaskStatus, Statuses] = {
    status: frozenset().union(
        *(change.after for change in CHANGES.values() if status in change.before)
    )
    for status in TaskStatus
}


def may_follow(before: TaskStatus, after: TaskStatus) -> bool:
    """Return whether a task may go from one status to the other in a single step."""
    return after in TRANSITIONS[before]
