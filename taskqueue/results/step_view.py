"""A step of a workflow, as its handle shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from taskqueue.core.workflow_states import StepStatus
from taskqueue.models import Step


@dataclass(frozen=True, kw_only=True)
class StepView:
    """A step as it was when last read."""

    name: str
    kind: str
    status: StepStatus
    # Tasks or children that it runs, None until they are known; those sent, ended, and failed.
    members: int | None
    released: int
    ended: int
    failures: int
    # Why it was skipped, cancelled, or failed without a task that says so.
    reason: str

    @classmethod
    def of(cls, row: Step) -> Self:
        """Take it from a row."""
        return cls(
            name=row.name,
            kind=row.kind,
            status=StepStatus(row.status),
            members=row.members,
            released=row.released,
            ended=row.ended,
            failures=row.shown_failures,
            reason=row.reason,
        )
