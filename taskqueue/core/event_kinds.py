"""The kinds of events, and the patterns that name them.

A kind consists of its noun, a dot and what happened. The noun decides who may see the event.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean


class EventKind(StrEnum):
    """The kinds of events."""

    # It waits for a worker, for its time, or for other tasks of its workflow.
    TASK_ENQUEUED = "task.enqueued"
    # A worker has claimed it: an attempt begins.
    TASK_STARTED = "task.started"
    # Its body has reported progress.
    TASK_PROGRESSED = "task.progressed"
    # It will run again: an attempt failed or was lost, or somebody has retried it.
    TASK_RETRYING = "task.retrying"
    TASK_SUCCEEDED = "task.succeeded"
    TASK_FAILED = "task.failed"
    TASK_CANCELLED = "task.cancelled"
    # An attempt was lost: its process died, or its lease expired.
    TASK_LOST = "task.lost"
    # Somebody has asked a running attempt to stop.
    TASK_STOPPING = "task.stopping"

    # It was enqueued, or somebody has retried it.
    WORKFLOW_STARTED = "workflow.started"
    WORKFLOW_SUCCEEDED = "workflow.succeeded"
    WORKFLOW_FAILED = "workflow.failed"
    WORKFLOW_CANCELLED = "workflow.cancelled"
    STEP_FAILED = "step.failed"

    # One of its nominal times did not run.
    SCHEDULE_SKIPPED = "schedule.skipped"
    SCHEDULE_PAUSED = "schedule.paused"

    QUEUE_PAUSED = "queue.paused"
    QUEUE_RESUMED = "queue.resumed"

    WORKER_STARTED = "worker.started"
    WORKER_QUIET = "worker.quiet"
    WORKER_STOPPED = "worker.stopped"
    WORKER_LOST = "worker.lost"

    # It has finished, failed, or was cancelled.
    OPERATION_FINISHED = "operation.finished"

    ALERT_RAISED = "alert.raised"
    ALERT_CLEARED = "alert.cleared"

    @property
    def noun(self) -> str:
        """Return the noun of the kind, such as `task`."""
        return self.value.partition(".")[0]


ALL_KINDS = tuple(kind.value for kind in EventKind)
NOUNS = tuple(dict.fromkeys(kind.noun for kind in EventKind))
# In characters.
LONGEST_KIND = 24


def kinds_of(patterns: Iterable[str]) -> list[str]:
    """Return the kinds that the patterns name, such as `task.failed` or `task.*`; none name all.

    Raises ValueError for a pattern that names no kind.
    """
    wanted: set[str] = set()
    given = [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in given:
        if not isinstance(pattern, str):
            raise ValueError(_(
                "A kind of events is text such as 'task.failed', not {pattern!r}.", pattern=pattern
            ))  # fmt: skip
        found = [kind for kind in ALL_KINDS if fnmatchcase(kind, pattern)]
        if not found:
            known = _("The kinds are {names}.", names=", ".join(ALL_KINDS))
            # A noun alone means all kinds of it.
            meant = [f"{pattern}.*"] if pattern in NOUNS else ALL_KINDS
            hint = did_you_mean(pattern, meant, otherwise=known)
            raise ValueError(_(
                "No event is of the kind {pattern!r}.{hint}", pattern=pattern, hint=hint
            ))  # fmt: skip
        wanted.update(found)
    return [kind for kind in ALL_KINDS if kind in wanted or not given]
