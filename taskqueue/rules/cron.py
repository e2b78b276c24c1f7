"""The rule of a cron expression."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from taskqueue.rules import cron_words, zones
from taskqueue.rules.base import Rule
from taskqueue.rules.cron_fields import HOUR, Fields, canonical_expression, fields_of
from taskqueue.rules.wall_clock import SECOND, nominal_times


@dataclass(frozen=True, init=False)
class Cron(Rule):
    """Due when the wall clock of `tz` fits a cron expression of five or six fields.

    The fields are minute, hour, day of the month, month, day of the week, and second (0 if it
    is left out). Where both days are restricted, either will do, as in cron. Names, `L`, `#`, `W`
    and the likes of `@daily` are croniter's.

    As in Vixie cron, a time that daylight saving leaves out is due once, at the first moment after
    the gap, and one that comes twice is due once, at its first time; but where every hour is due
    at the same minutes, and a change of the clock leaves them the same, nothing is made up for and
    what comes twice is due twice: `*/10 * * * *` is due every ten minutes whatever the clock does.
    """

    kind: ClassVar[str] = "cron"
    expression: str
    tz: str
    start: datetime | None
    end: datetime | None
    refusal: str = field(repr=False)

    def __init__(
        self,
        expression: str,
        tz: str | object = "UTC",
        *,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> None:
        self._settle({"expression": expression, "tz": tz, "start": start, "end": end})

    def _canonical(self, **given: Any) -> dict[str, Any]:
        return {
            "expression": canonical_expression(given["expression"]),
            "tz": zones.zone_name("Cron", given["tz"]),
        }

    def walls_from(self, wall: datetime) -> Iterator[datetime]:
        """Yield the nominal times at or after `wall`, which is naive, strictly increasing."""
        fields = self._fields
        for day in fields.days_from(wall):
            # All of a day but the first is at or after `wall`.
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

    def _times(self, after: datetime) -> Iterator[datetime]:
        return nominal_times(self, zones.zone(self.tz), after)

    def _description(self) -> str:
        return f"{cron_words.described(self.expression)} ({self.tz})"

    def _json_values(self) -> dict[str, Any]:
        return {"expression": self.expression, "tz": self.tz}
