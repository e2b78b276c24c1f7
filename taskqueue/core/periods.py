"""Periods: the minute, hour, day, week or span of time in which a moment lies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WORDS = ("minute", "hour", "day", "week")


class Period(NamedTuple):
    """One period: no other one of any length has its label."""

    label: str
    # The first moment after it.
    ends_at: datetime


def period_of(per: str, moment: datetime, zone: tzinfo) -> Period:
    """Return the period in which a moment lies.

    `per` is one of `WORDS`, by the wall clock of the zone, or a number of seconds as text, which
    are counted from 1970-01-01 00:00 UTC. A week begins on Monday. An hour that the clock shows
    twice is two periods.
    """
    if per not in WORDS:
        length = timedelta(seconds=float(per))
        number = (moment - EPOCH) // length
        return Period(f"{per}s:{number}", EPOCH + (number + 1) * length)
    local = moment.astimezone(zone)
    if per in ("minute", "hour"):
        # Elapsed time, not wall time: if a clock is put back by half an hour, the beginning of an
        # hour by the clock has another offset than its end.
        gone = timedelta(seconds=local.second, microseconds=local.microsecond)
        if per == "minute":
            ends_at = moment - gone + timedelta(minutes=1)
            return Period(f"{local:%Y-%m-%dT%H:%M%z}", ends_at.astimezone(UTC))
        ends_at = moment - gone - timedelta(minutes=local.minute) + timedelta(hours=1)
        return Period(f"{local:%Y-%m-%dT%H%z}", ends_at.astimezone(UTC))
    day = local.date()
    if per == "week":
        day -= timedelta(days=day.weekday())
    year, week, _ = day.isocalendar()
    label = f"{day:%Y-%m-%d}" if per == "day" else f"{year}-W{week:02}"
    after = day + timedelta(days=1 if per == "day" else 7)
    ends_at = datetime(after.year, after.month, after.day, tzinfo=zone).astimezone(UTC)
    return Period(label, ends_at)
