"""Policies of schedules for missed nominal times and for runs that overlap."""

from __future__ import annotations

from enum import StrEnum


class Missed(StrEnum):
    """The policy for nominal times that passed while no worker served the schedule."""

    SKIP = "skip"
    """None of them runs."""
    LATEST = "latest"
    """Only the latest of them runs."""
    ALL = "all"
    """All of them run, the oldest first."""
    WINDOW = "window"
    """Those that are not older than `missed_window` run."""


class Overlap(StrEnum):
    """The policy for a nominal time while an earlier run has not ended."""

    SKIP = "skip"
    """It does not run."""
    QUEUE_ONE = "queue_one"
    """It runs after the earlier one; while one run waits, further ones are skipped."""
    QUEUE_ALL = "queue_all"
    """All runs take place, one after another."""
    CANCEL = "cancel"
    """The earlier run is cancelled or asked to stop; the new one starts once it has ended."""
    ALLOW = "allow"
    """It runs at the same time as the earlier one."""
