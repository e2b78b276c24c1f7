"""Cron expressions, read by croniter: which days, and which times of a day.

croniter is asked for naive days alone. Its own treatment of daylight saving is not used: with
aware datetimes it runs a daily 02:30 twice where the clock is put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import merge
from typing import Any

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules.cron_form import well_formed
from taskqueue.rules.values import shown

HOUR = timedelta(hours=1)
_SIZES = {0: 60, 1: 24, 5: 60}


@dataclass(frozen=True)
class Fields:
    """What an expression says: the times of a day, and expressions for the days at midnight."""

    hours: tuple[timedelta, ...]
    within_hour: tuple[timedelta, ...]
    day_expressions: tuple[str, ...]

    def days_from(self, wall: datetime) -> Iterator[datetime]:
        """Yield the days that fit, as their midnights, from that of `wall` on, increasing."""
        midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
        last = None
        for day in merge(*(_days(each, midnight) for each in self.day_expressions)):
            if day != last:
                yield day
            last = day

    def is_steady_through(self, shift: timedelta) -> bool:
        """Whether all hours have the same times, and so have hours that begin `shift` later."""
        turned = {(within + shift) % HOUR for within in self.within_hour}
        return len(self.hours) == 24 and turned == set(self.within_hour)


def canonical_expression(value: object) -> str:
    """Return the expression with single spaces, short forms written out.

    Raises InvalidSchedule for one that is none, or that leaves its times open.
    """
    expression = well_formed(value)
    fields_of(expression)
    return expression


@lru_cache(maxsize=1024)
def fields_of(expression: str) -> Fields:
    """Return what a canonical expression says. Raises InvalidSchedule if croniter refuses it."""
    values = expanded(expression)
    minutes, hours = _numbers(expression, values, 0), _numbers(expression, values, 1)
    seconds = _numbers(expression, values, 5) if len(values) > 5 else [0]
    return Fields(
        hours=tuple(timedelta(hours=hour) for hour in hours),
        within_hour=tuple(
            timedelta(minutes=minute, seconds=second) for minute in minutes for second in seconds
        ),
        day_expressions=_day_expressions(expression, values),
    )


def expanded(expression: str) -> list[list[Any]]:
    """Return croniter's values of each field, `["*"]` where a field says nothing.

    Raises InvalidSchedule whatever croniter raises.
    """
    from croniter import croniter  # late: not everybody who imports taskqueue has schedules

    try:
        values: list[list[Any]] = croniter.expand(expression, strict=True)[0]
    except Exception as error:  # croniter raises KeyError, TypeError and others for some texts
        raise _no_expression(expression, error) from None
    return values


def _day_expressions(expression: str, expanded: list[list[Any]]) -> tuple[str, ...]:
    of_month, month, of_week = expression.split()[2:5]
    if expanded[2] == ["*"] or expanded[4] == ["*"]:
        return (f"0 0 {of_month} {month} {of_week}",)
    # Either will do. Asked for both, croniter would join `#` and `W` with "and" instead.
    return (f"0 0 {of_month} {month} *", f"0 0 * {month} {of_week}")


def _days(expression: str, midnight: datetime) -> Iterator[datetime]:
    from croniter import CroniterBadDateError, croniter

    if midnight > datetime.min:
        midnight -= timedelta(seconds=1)
    try:
        days = croniter(expression, midnight, ret_type=datetime)
        while True:
            yield days.get_next()
    except (CroniterBadDateError, ValueError, OverflowError):
        return  # none within 50 years, or beyond the year 9999
    except Exception as error:
        raise _no_expression(expression, error) from None


def _numbers(expression: str, values: list[list[Any]], position: int) -> list[int]:
    if values[position] == ["*"]:
        return list(range(_SIZES[position]))
    if not all(isinstance(value, int) for value in values[position]):
        raise _no_expression(expression, f"{values[position]} are no numbers")
    return sorted(values[position])


def _no_expression(expression: str, reason: object) -> InvalidSchedule:
    lines = str(reason).splitlines() or [type(reason).__name__]
    return InvalidSchedule(
        f"Cron: {shown(expression)} is no cron expression, or never fires: {lines[-1]}"
    )
