"""The rule of a daily window, in which a schedule is due at a steady pace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from itertools import takewhile
from typing import Any, ClassVar

from taskqueue.exceptions import Duration, InvalidSchedule
from taskqueue.rules import values, wording, zones
from taskqueue.rules.base import Rule
from taskqueue.rules.wall_clock import nominal_times

DAY = timedelta(days=1)
MIDNIGHT = time()


@dataclass(frozen=True, init=False)
class DailyWindow(Rule):
    """Due at `first`, then `every` so often, not after `last`, by the wall clock of `tz`.

    `first` and `last` are times, or text such as "09:00"; where `last` is earlier than `first`,
    the window goes on past midnight. `every` is seconds or a timedelta, from a second to a day.
    `days` are the days on which the window begins: "mon-fri", "mon,wed", or several names.

    A time that daylight saving leaves out is due once, at the first moment after the gap, and one
    that comes twice is due once, at its first time; but where times come `every` so often on both
    sides of the change, and go on in the same steps of real time through it, they do so.
    """

    kind: ClassVar[str] = "daily_window"
    first: time
    last: time
    every: timedelta
    days: tuple[str, ...]
    tz: str
    start: datetime | None
    end: datetime | None
    refusal: str = field(repr=False)

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

    def _canonical(self, **given: Any) -> dict[str, Any]:
        owner = type(self).__name__
        every = values.duration(owner, "every", given["every"])
        if every > DAY:
            raise InvalidSchedule(
                f"{owner}: every must be at most one day, not {values.shown(given['every'])}. "
                "Choose the days by `days`."
            )
        return {
            "first": values.clock_time(owner, "first", given["first"]),
            "last": values.clock_time(owner, "last", given["last"]),
            "every": every,
            "days": values.week_days(owner, given["days"]),
            "tz": zones.zone_name(owner, given["tz"]),
        }

    def walls_from(self, wall: datetime) -> Iterator[datetime]:
        """Yield the nominal times at or after `wall`, which is naive, strictly increasing."""
        length = datetime.combine(wall, self.last) - datetime.combine(wall, self.first)
        length %= DAY
        numbers = {values.DAYS.index(name) for name in self.days}
        day = datetime.combine(wall, MIDNIGHT)
        if day > datetime.min:
            day -= DAY  # yesterday's window may go on past midnight
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
        first = next(around, None)
        if first is None or first >= low:
            return False
        expected = first
        for following in around:
            expected += self.every
            if following != expected:
                return False
        return expected >= high

    def _times(self, after: datetime) -> Iterator[datetime]:
        return nominal_times(self, zones.zone(self.tz), after)

    def _description(self) -> str:
        over = " the next day" if self.last < self.first else ""
        return (
            f"{wording.every(self.every)} from {wording.clock(self.first)} "
            f"to {wording.clock(self.last)}{over}, {wording.days(self.days)} ({self.tz})"
        )

    def _json_values(self) -> dict[str, Any]:
        return {
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "every": values.seconds(self.every),
            "days": list(self.days),
            "tz": self.tz,
        }
