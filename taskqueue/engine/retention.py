"""How long a finished task is kept, and whether it keeps its unique key.

The rule is written twice here, in Python and in SQL for PostgreSQL; a test compares them. It is
applied when the task ends, not when it is pruned: pruning reads the index of `prune_after` and
finds only rows that it deletes, even if many others have a longer retention or hold a unique key.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from taskqueue.conf import Settings
from taskqueue.models import Task


class EndPolicy(NamedTuple):
    """The settings that apply when a task ends: retention, and how long tasks stay parked."""

    keep_succeeded: timedelta | None
    keep_failed: timedelta | None
    keep_cancelled: timedelta | None
    park_limit: timedelta

    def kept_for(self, status: str) -> timedelta | None:
        """Return how long tasks of a final status are kept; None means forever."""
        kept: timedelta | None = getattr(self, f"keep_{status}")
        return kept

    @classmethod
    def of(cls, settings: Settings) -> EndPolicy:
        """Return the policy of the project's settings."""
        kept = {f"keep_{status}": kept for status, kept in settings.RETENTION.items()}
        return cls(**kept, park_limit=settings.PARK_LIMIT)


class Retention(NamedTuple):
    """The columns of a task that decide how long it is kept."""

    # The task's own retention, which overrides the settings.
    retention: timedelta | None
    unique_until: datetime | None
    holds_unique_key: bool
    unique_for: str
    # Whether it belongs to a workflow, which prunes its tasks itself.
    step_id: int | None = None

    @classmethod
    def of(cls, task: Task) -> Retention:
        """Return the columns of a task."""
        own = task.retention, task.unique_until, task.holds_unique_key, task.unique_for
        return cls(*own, task.step_id)

    @property
    def keeps_key(self) -> bool:
        """Whether the task still holds its unique key after its end."""
        return self.holds_unique_key and self.unique_for in ("kept", "duration")

    def prune_after(self, finished_at: datetime, kept_for: timedelta | None) -> datetime | None:
        """Return when it may be pruned, never before its key is free; None means never.

        `kept_for` is the retention of its status in the settings; None means forever.
        """
        if self.retention is not None:
            kept_for = self.retention
        if (
            self.step_id is not None
            or kept_for is None
            or (self.holds_unique_key and self.unique_for == "kept")
        ):
            return None
        end = finished_at + kept_for
        if self.holds_unique_key and self.unique_until is not None:
            return max(end, self.unique_until)
        return end


# GREATEST ignores NULL, so tasks that are kept forever would be pruned: hence infinity.
# `Retention.prune_after` as SQL, for use in PostgreSQL's statements.
PRUNE_AFTER = """CASE
        WHEN task.step_id IS NOT NULL THEN NULL
        WHEN task.holds_unique_key AND task.unique_for = 'kept' THEN NULL
        ELSE NULLIF(GREATEST(
            COALESCE({finished_at} + COALESCE(task.retention, {kept_for}), 'infinity'),
            CASE WHEN task.holds_unique_key THEN task.unique_until END
        ), 'infinity')
    END"""
# `Retention.keeps_key` as SQL.
KEEPS_KEY = "task.holds_unique_key AND task.unique_for IN ('kept', 'duration')"
