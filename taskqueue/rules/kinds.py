"""The kinds of rules: by the wall clock, by elapsed time, or once.

Daylight saving only affects those by the wall clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import pairwise, takewhile
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import Duration, InvalidSchedule
from taskqueue.rules import values, wall_clock, wording
from taskqueue.rules.base import EPOCH, FIRST, LAST, RESOLUTION, Rule
from taskqueue.rules.cron_fields import HOUR, Fields, canonical_expression, fields_of
from taskqueue.rules.values import CLOCK, DAY, DURATION, LIMITS, SECOND, WEEK_DAYS, Part
from taskqueue.rules.wall_clock import ClockRule

MIDNIGHT = time()


def _pace(owner: str, name: str, value: object) -> timedelta:
    every = values.duration(owner, name, value)
    if every > DAY:
        raise InvalidSchedule(_(
            "{owner}: {name} must be at most one day, not {shown}. Choose the days by `days`.",
            owner=owner, name=name, shown=values.shown(value),
        ))  # fmt: skip
    return every


ZONE = Part(lambda owner, name, tz: wall_clock.zone_name(owner, tz), str, values.text_from_json)
PACE = DURATION._replace(canonical=_pace)
EXPRESSION = Part(lambda owner, name, text: canonical_expression(text), str, values.text_from_json)


@dataclass(frozen=True, init=False, repr=False)
class Cron(ClockRule):
    """Due when the wall clock of `tz` matches a cron expression of five or six fields.

    The fields are minute, hour, day of the month, month, day of the week, and second (0 if it
    is left out). If both days are restricted, either may match, as in cron. Names, `L`, `#`, `W`
    and macros such as `@daily` work as in croniter.

    As in Vixie cron, a time that daylight saving skips is due once, at the first moment after the
    gap, and one that occurs twice is due once, at its first occurrence. But if every hour is due at
    the same minutes, and a change of the clock does not alter them, skipped times are not made up
    for and repeated times are due twice: `*/10 * * * *` is due every ten minutes of real time.
    """

    kind = "cron"
    required = {"expression": EXPRESSION}
    optional = {"tz": ZONE, **LIMITS}
    expression: str

    def __init__(
        self,
        expression: str,
        tz: str | object = "UTC",
        *,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        self._settle({"expression": expression, "tz": tz, "start": start, "end": end})

    def walls_from(self, wall: datetime) -> Iterator[datetime]:
        """Yield the nominal times at or after `wall`, which is naive, strictly increasing."""
        fields = self._fields
        for day in fields.days_from(wall):
            # All times of a day after the first are at or after `wall`.
            since = max(wall - day, timedelta(0))
            for hour in fields.hours[bisect_left(fields.hours, since - HOUR + SECOND) :]:
                begin = day + hour
                for within in fields.within_hour[bisect_left(fields.within_hour, since - hour) :]:
                    yield begin + within

    def keeps_pace(self, low: datetime, high: datetime) -> bool:
        """Return whether every hour has the same times, also after a shift by `high - low`."""
        return self._fields.is_steady_through(high - low)

    @property
    def _fields(self) -> Fields:
        return fields_of(self.expression)

    def _description(self) -> str:
        return f"{wording.described(self.expression)} ({self.tz})"


@dataclass(frozen=True, init=False, repr=False)
class DailyWindow(ClockRule):
    """Due at `first`, then at every interval `every` until `last`, by the wall clock of `tz`.

    `first` and `last` are times, or text such as "09:00"; if `last` is earlier than `first`, the
    window extends past midnight. `every` is seconds or a timedelta, from a second to a day.
    `days` are the days on which the window begins: "mon-fri", "mon,wed", or several names.

    A time that daylight saving skips is due once, at the first moment after the gap, and one that
    occurs twice is due once, at its first occurrence. But if the times have the same steps of real
    time on both sides of the change and through it, they keep these steps.
    """

    kind = "daily_window"
    required = {"first": CLOCK, "last": CLOCK, "every": PACE}
    optional = {"days": WEEK_DAYS, "tz": ZONE, **LIMITS}
    first: time
    last: time
    every: timedelta
    days: tuple[str, ...]

    def __init__(
        self,
        first: str | time,
        last: str | time,
        *,
        every: Duration,
        days: str | Iterable[str] = "mon-sun",
        tz: str | object = "UTC",
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        given = {"first": first, "last": last, "every": every, "days": days, "tz": tz}
        self._settle(given | {"start": start, "end": end})

    def walls_from(self, wall: datetime) -> Iterator[datetime]:
        """Yield the nominal times at or after `wall`, which is naive, strictly increasing."""
        length = datetime.combine(wall, self.last) - datetime.combine(wall, self.first)
        length %= DAY
        numbers = {values.DAYS.index(name) for name in self.days}
        day = datetime.combine(wall, MIDNIGHT)
        if day > datetime.min:
            day -= DAY  # yesterday's window may extend past midnight
        while day < datetime.max - 2 * DAY:
            if day.weekday() in numbers:
                begin = datetime.combine(day, self.first)
                skipped = max(0, -((begin - wall) // self.every))
                moment = begin + skipped * self.every
                while moment - begin <= length:
                    yield moment
                    moment += self.every
            day += DAY

    def keeps_pace(self, low: datetime, high: datetime) -> bool:
        """Return whether times come at the pace `every` throughout [low, high), and around it.

        Then putting the clock forward or back by that length does not disturb them.
        """
        if (high - low) % self.every:
            return False
        around = takewhile(lambda wall: wall < high + self.every, self.walls_from(low - self.every))
        times = list(around)
        return (
            bool(times)
            and times[0] < low
            and times[-1] >= high
            and all(after - before == self.every for before, after in pairwise(times))
        )

    def _description(self) -> str:
        over = " the next day" if self.last < self.first else ""
        return (
            f"{wording.every(self.every)} from {wording.clock(self.first)} "
            f"to {wording.clock(self.last)}{over}, {wording.days(self.days)} ({self.tz})"
        )


@dataclass(frozen=True, init=False, repr=False)
class _Interval(Rule):
    """A rule of one duration, given as a whole or in units that are added up."""

    required = {"interval": values.FINE_DURATION}
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

    @property
    def is_fine(self) -> bool:
        return self.interval < SECOND

    def _canonical(self, **given: Any) -> dict[str, Any]:
        whole = values.interval(type(self).__name__, given["interval"], given["units"])
        return super()._canonical(**given | {"interval": whole})


@dataclass(frozen=True, init=False, repr=False)
class Every(_Interval):
    """Due at every `interval` of real time, counted from `start` or else the Unix epoch.

    `interval` is seconds or a timedelta, at least 50 ms and at most 100 years. The times are
    pure arithmetic in microseconds: they never drift, and daylight saving does not move them.
    """

    kind = "every"

    def _times(self, after: datetime) -> Iterator[datetime]:
        anchor = EPOCH if self.start is None else self.start
        turn = (after - anchor) // self.interval + 1
        if self.start is not None:
            turn = max(turn, 0)
        # In whole microseconds: multiplying a timedelta is exact, but may overflow.
        step, first = self.interval // RESOLUTION, (anchor - FIRST) // RESOLUTION
        last = (LAST - FIRST) // RESOLUTION
        for offset in range(first + turn * step, last + 1, step):
            yield FIRST + offset * RESOLUTION

    def _description(self) -> str:
        return wording.every(self.interval)


@dataclass(frozen=True, init=False, repr=False)
class AfterEnd(_Interval):
    """Due an interval after the end of the last run, which callers pass to `after`.

    `interval` is seconds or a timedelta, at least 50 ms and at most 100 years. It is never due
    before `start` nor after `end`. `between` yields the times for runs that take no time.
    """

    kind = "after_end"
    waits_for_end = True

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

    kind = "once"
    required = {"at": values.MOMENT}
    optional = {}
    at: datetime

    def __init__(self, at: datetime) -> None:
        self._settle({"at": at})

    def _times(self, after: datetime) -> Iterator[datetime]:
        if self.at > after:
            yield self.at

    def _description(self) -> str:
        return f"Once, at {wording.moment(self.at)}"
