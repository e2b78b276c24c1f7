"""What a schedule does about nominal times that were missed, and about runs that overlap."""

from __future__ import annotations

from enum import StrEnum


class Missed(StrEnum):
    """What becomes of nominal times that passed while nobody served the schedule."""

    SKIP = "skip"
    """None of them runs."""
    LATEST = "latest"
    """One run makes up for all of them, that of the latest."""
    ALL = "all"
    """All of them run, the oldest first."""
    WINDOW = "window"
    """Those run that are not older than `missed_window`."""


class Overlap(StrEnum):
    """What becomes of a nominal time while an earlier run has not ended."""

    SKIP = "skip"
    """It does not run."""
    QUEUE_ONE = "queue_one"
    """It runs after the one before; while one waits for that, further ones do not run."""
    QUEUE_ALL = "queue_all"
    """All run, one after the other."""
    CANCEL = "cancel"
    """The one before is cancelled, or asked to stop; the new one runs once that has ended."""
    ALLOW = "allow"
    """It runs beside the one before."""
