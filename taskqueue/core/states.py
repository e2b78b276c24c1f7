"""The statuses of tasks and leases, and policies for missed times and overlapping runs."""

from enum import StrEnum


class TaskStatus(StrEnum):
    """The status of a task; `succeeded`, `failed` and `cancelled` are final."""

    # Waits for other tasks of its workflow.
    BLOCKED = "blocked"
    # Waits for its `run_after`.
    SCHEDULED = "scheduled"
    # May be claimed by any worker of its queue.
    READY = "ready"
    # A worker holds a lease on it.
    RUNNING = "running"
    # Failed or was lost, and waits for its next attempt.
    RETRYING = "retrying"
    # Its body returned.
    SUCCEEDED = "succeeded"
    # No attempt remains, or none would help.
    FAILED = "failed"
    # Somebody stopped it, or it expired before it started.
    CANCELLED = "cancelled"


class LeaseStatus(StrEnum):
    """The status of one attempt; only a `running` lease may write."""

    # A worker holds the task.
    RUNNING = "running"
    # The body returned.
    SUCCEEDED = "succeeded"
    # The body raised, ran out of time, or could not be called.
    FAILED = "failed"
    # The child died, the lease ran out, or the worker fenced itself.
    LOST = "lost"
    # Somebody asked it to stop, or the body raised `Cancel`.
    STOPPED = "stopped"
    # Handed back without a verdict: snoozed, parked, or shut down.
    RETURNED = "returned"


# Statuses that become `ready` once `run_after` is reached.
WAITING = frozenset({TaskStatus.SCHEDULED, TaskStatus.RETRYING})

# Statuses of tasks that are neither running nor finished.
PENDING = frozenset({TaskStatus.BLOCKED, *WAITING, TaskStatus.READY})

# Final statuses: only a manual retry leaves them.
FINISHED = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELLED})


class Missed(StrEnum):
    """The policy for nominal times that passed while no worker served the schedule."""

    # None of them runs.
    SKIP = "skip"
    # Only the latest of them runs.
    LATEST = "latest"
    # All of them run, the oldest first.
    ALL = "all"
    # Those that are not older than `missed_window` run.
    WINDOW = "window"


class Overlap(StrEnum):
    """The policy for a nominal time while an earlier run has not ended."""

    # It does not run.
    SKIP = "skip"
    # It runs after the earlier one; while one run waits, further ones are skipped.
    QUEUE_ONE = "queue_one"
    # All runs take place, one after another.
    QUEUE_ALL = "queue_all"
    # The earlier run is cancelled or asked to stop; the new one starts once it has ended.
    CANCEL = "cancel"
    # It runs at the same time as the earlier one.
    ALLOW = "allow"
