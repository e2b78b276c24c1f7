"""Batches: events that are collected become one task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from taskqueue.core.naming import shown
from taskqueue.core.retries import seconds_of
from taskqueue.exceptions import Duration, InvalidTask

LARGEST_SIZE = 10_000
LEAST_BYTES, LARGEST_BYTES = 1024, 8 * 2**20
DAY = 86_400
LONGEST = 30 * DAY
# Brackets around the list of events, and around the arguments.
BRACKETS = 4


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Options of a batch, in which collected events become a task: `@task(batch=Batch(...))`.

    The events of a group become a task as soon as there are `max_size` of them, none has come for
    `grace` seconds, or the oldest has waited for `max_delay` seconds. A task holds at most
    `max_size` events and `max_bytes` of JSON. Raises `InvalidTask`.
    """

    max_size: int = 100
    grace: Duration = 5
    max_delay: Duration = 60
    max_bytes: int = 2**20

    def __post_init__(self) -> None:
        _check_whole("max_size", self.max_size, 1, LARGEST_SIZE)
        _check_whole("max_bytes", self.max_bytes, LEAST_BYTES, LARGEST_BYTES)
        grace, delay = self.seconds("grace"), self.seconds("max_delay")
        if grace > delay:
            raise InvalidTask(
                f"Batch(grace={shown(self.grace)}) must not be longer than "
                f"max_delay={shown(self.max_delay)}."
            )

    def seconds(self, name: str) -> float:
        """Return a duration in seconds. Raises `InvalidTask`."""
        value: Any = getattr(self, name)
        is_duration = isinstance(value, int | float | timedelta) and not isinstance(value, bool)
        seconds = seconds_of(value) if is_duration else -1.0
        if not 0 <= seconds <= LONGEST:
            raise InvalidTask(
                f"Batch({name}=...) must be 0 to {LONGEST // DAY} days, in seconds or as a "
                f"timedelta, not {shown(value)}."
            )
        return float(seconds)


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidTask(
            f"Batch({name}=...) must be a whole number from {least:,} to {most:,}, not {value!r}."
        )


def check_batch(name: str, value: object) -> Batch:
    """Return the value of the option. Raises `InvalidTask`."""
    if not isinstance(value, Batch):
        raise InvalidTask(f"{name} must be a Batch, such as Batch(max_size=100), not {value!r}.")
    return value
