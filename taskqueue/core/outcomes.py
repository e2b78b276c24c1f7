"""What one attempt came to, decided before anything is written. Standard library only."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class OutcomeKind(StrEnum):
    """What happened to an attempt; the engine knows for each what becomes of lease and task."""

    SUCCEEDED = "succeeded"
    """The body returned."""
    FAILED = "failed"
    """The body raised: retried while failures remain and `retryable` holds."""
    RETRY_LATER = "retry_later"
    """The body raised `RetryLater`: retried, always."""
    SNOOZED = "snoozed"
    """The body raised `Snooze`: scheduled again, nothing counted."""
    CANCELLED = "cancelled"
    """The body raised `Cancel`."""
    STOPPED = "stopped"
    """Somebody asked the attempt to stop, and it did."""
    LOST = "lost"
    """The process that ran it died: a crash."""
    FENCED = "fenced"
    """The worker could not renew its leases and killed its children: no crash."""
    RETURNED = "returned"
    """Its body was interrupted by a shutdown: runs again, nothing counted."""
    UNSTARTED = "unstarted"
    """Handed back before its body started: leaves no trace."""
    PARKED = "parked"
    """This worker has no definition of that name: waits for one that has."""


class Outcome(NamedTuple):
    """One attempt's end.

    Within a worker its times are moments of the host's monotonic clock; for the engine they are
    seconds before the outcome reaches it.
    """

    lease_id: int
    kind: str
    ended: float
    """When it ended. Without a default: nothing else could tell the engine."""
    return_value: str | None = None
    """JSON text; None is null."""
    error_class: str = ""
    error_message: str = ""
    traceback: str = ""
    delay: float = 0.0
    """Seconds until the next attempt, where there is one."""
    retryable: bool = True
    started: float | None = None
    """When the body started; None: never."""


def is_final(outcome: Outcome, *, failures: int, max_attempts: int) -> bool:
    """Whether an attempt that failed, after so many earlier failures, leaves none to follow."""
    return not outcome.retryable or failures + 1 >= max_attempts
