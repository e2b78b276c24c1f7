"""Rules of elapsed time and of a single time, which daylight saving does not move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from taskqueue.exceptions import Duration
from taskqueue.rules import values, wording
from taskqueue.rules.base import EPOCH, FIRST, LAST, RESOLUTION, Rule
from taskqueue.rules.values import Part


@dataclass(frozen=True, init=False, repr=False)
class _Interval(Rule):
    """A rule of one duration, given as a whole or in units that are added up."""

    required: ClassVar[Mapping[str, Part]] = {"interval": values.DURATION}
    interval: timedelta

    def __init__(
        self,
        interval: Duration | None = None,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        units = {"weeks": weeks, "days": days, "hours": hours}
        units |= {"minutes": minutes, "seconds": seconds}
        self._settle({"interval": interval, "start": start, "end": end}, units=units)

    def _canonical(self, **given: Any) -> dict[str, Any]:
        whole = values.interval(type(self).__name__, given["interval"], given["units"])
        return super()._canonical(**given | {"interval": whole})


@dataclass(frozen=True, init=False, repr=False)
class Every(_Interval):
    """Due every `interval` of real time, counted from `start`, else from the Unix epoch.

    `interval` is seconds or a timedelta, at least a second and at most 100 years. The times are
    pure arithmetic in microseconds: they never drift, and daylight saving does not move them.
    """

    kind: ClassVar[str] = "every"

    def _times(self, after: datetime) -> Iterator[datetime]:
        anchor = EPOCH if self.start is None else self.start
        turn = (after - anchor) // self.interval + 1
        if self.start is not None:
            turn = max(turn, 0)
        # In whole microseconds: a timedelta that is multiplied is exact, but may overflow.
        step, first = self.interval // RESOLUTION, (anchor - FIRST) // RESOLUTION
        last = (LAST - FIRST) // RESOLUTION
        for offset in range(first + turn * step, last + 1, step):
            yield FIRST + offset * RESOLUTION

    def _description(self) -> str:
        return wording.every(self.interval)


@dataclass(frozen=True, init=False, repr=False)
class AfterEnd(_Interval):
    """Due so long after the end of the last run: `after` wants the moment of that end.

    `interval` is seconds or a timedelta, at least a second and at most 100 years. It is never due
    before `start` nor after `end`. What `between` yields is how runs without any length would
    follow each other.
    """

    kind: ClassVar[str] = "after_end"
    waits_for_end: ClassVar[bool] = True

    def _not_before_start(self, after: datetime) -> datetime:
        if self.start is None or self.start - FIRST < self.interval:
            return after
        return max(after, self.start - self.interval)

    def _times(self, after: datetime) -> Iterator[datetime]:
        moment = after
        while moment <= LAST - self.interval:
            moment += self.interval
            yield moment

    def _description(self) -> str:
        return f"{wording.duration(self.interval)} after the last end"


@dataclass(frozen=True, init=False, repr=False)
class Once(Rule):
    """Due once, `at` an aware datetime."""

    kind: ClassVar[str] = "once"
    required: ClassVar[Mapping[str, Part]] = {"at": values.MOMENT}
    optional: ClassVar[Mapping[str, Part]] = {}
    at: datetime

    def __init__(self, at: datetime) -> None:
        self._settle({"at": at})

    def _times(self, after: datetime) -> Iterator[datetime]:
        if self.at > after:
            yield self.at

    def _description(self) -> str:
        return f"Once, at {wording.moment(self.at)}"
