"""What the processes of a race share: the simulated clock, and what happened to them."""

from __future__ import annotations

import multiprocessing
from ctypes import c_int64
from datetime import UTC, datetime, timedelta

FORK = multiprocessing.get_context("fork")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Shared:
    """Numbers in memory that forked processes share. Each is written whole, whoever is killed."""

    def __init__(self, since: datetime) -> None:
        self._clock = FORK.RawValue(c_int64, (since - EPOCH) // MICROSECOND)
        self._is_over = FORK.RawValue(c_int64, 0)
        self._fuses = FORK.RawValue(c_int64, 0)
        self._retries = FORK.RawValue(c_int64, 0)
        self._errors = FORK.RawValue(c_int64, 0)
        self._writes = FORK.RawValue(c_int64, 0)
        self._turns = FORK.RawValue(c_int64, 0)

    @property
    def clock(self) -> datetime:
        """What time it is in the simulation."""
        return EPOCH + self._clock.value * MICROSECOND

    def turn_clock(self, seen: datetime, to: datetime) -> None:
        """Turn it on, unless somebody has done so since it was seen."""
        if self.clock == seen:
            self._clock.value = (to - EPOCH) // MICROSECOND
            self._turns.value += 1

    @property
    def is_over(self) -> bool:
        """Whether all is served up to the end of the time."""
        return bool(self._is_over.value)

    def end(self) -> None:
        """Tell everybody that it is over."""
        self._is_over.value = 1

    def count_fuse(self) -> None:
        """Somebody dies in the midst of a transaction."""
        self._fuses.value += 1

    def count_write(self) -> None:
        """Somebody writes; of two at the same time one may be lost."""
        self._writes.value += 1

    def count_retry(self) -> None:
        """The database had somebody try again."""
        self._retries.value += 1

    def count_error(self) -> None:
        """Somebody could not serve a schedule."""
        self._errors.value += 1

    @property
    def fuses(self) -> int:
        """How many died in the midst of a transaction."""
        return int(self._fuses.value)

    @property
    def writes(self) -> int:
        """About how often somebody wrote: how much work there was to kill somebody in."""
        return int(self._writes.value)

    @property
    def retries(self) -> int:
        """How often the database had somebody try again."""
        return int(self._retries.value)

    @property
    def errors(self) -> int:
        """How often a schedule was not served."""
        return int(self._errors.value)

    @property
    def turns(self) -> int:
        """How often the clock was turned on."""
        return int(self._turns.value)
