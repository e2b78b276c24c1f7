"""Policies of schedules for missed nominal times and for runs that overlap."""

from enum import StrEnum


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
