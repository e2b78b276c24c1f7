"""The allowed transitions between task statuses. Standard library only.

They are derived from the table of outcomes and from what else changes a status.
"""

from __future__ import annotations

from typing import NamedTuple

from taskqueue.core.outcomes import EFFECTS
from taskqueue.core.states import FINISHED, PENDING, TaskStatus

Statuses = frozenset[TaskStatus]


class Change(NamedTuple):
    """A cause that leads from some statuses to others, in a single step."""

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
