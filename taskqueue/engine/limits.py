"""The settings that decide what a recorded outcome leads to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from taskqueue.conf import Settings
from taskqueue.core.states import TaskStatus


@dataclass(frozen=True, slots=True)
class Limits:
    """How long finished tasks are kept, and unknown ones wait."""

    keep_succeeded: timedelta | None
    keep_failed: timedelta | None
    keep_cancelled: timedelta | None
    park_limit: timedelta

    def kept_for(self, status: str) -> timedelta | None:
        """Return how long tasks of a final status are kept; None: for ever."""
        return {
            TaskStatus.SUCCEEDED: self.keep_succeeded,
            TaskStatus.FAILED: self.keep_failed,
            TaskStatus.CANCELLED: self.keep_cancelled,
        }[TaskStatus(status)]

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """The limits in the project's settings."""
        return cls(
            keep_succeeded=settings.RETENTION["succeeded"],
            keep_failed=settings.RETENTION["failed"],
            keep_cancelled=settings.RETENTION["cancelled"],
            park_limit=settings.PARK_LIMIT,
        )
