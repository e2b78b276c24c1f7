"""Cron expressions, read by croniter: which days, and which times of a day.

croniter is asked for naive days alone. Its own treatment of daylight saving is not used: with
aware datetimes it runs a daily 02:30 twice where the clock is put back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import merge
from typing import Any

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules.values import shown, suggestion

HOUR = timedelta(hours=1)
LONGEST_EXPRESSION = 1000
# What is due at times that are drawn, not determined by the expression.
_DRAWN = re.compile(r"[hr](\(.*|/.*)?")
_RANGE = re.compile(r"(\w+)-(\w+)(/\d+)?", re.ASCII)
_WEEK = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_YEAR = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = {name: str(number) for number, name in enumerate(_WEEK)}
_NUMBERS |= {name: str(number) for number, name in enumerate(_YEAR, 1)}
_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_WRITE = 'Write five or six fields, such as "0 6 * * mon-fri".'


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
    if not isinstance(value, str):
        raise InvalidSchedule(f"Cron: the expression must be text, not {shown(value)}. {_WRITE}")
    expression = _SHORT.get(value.strip().lower(), value)
    _check_form(expression, value)
    expression = " ".join(expression.split())
    _check_fields(expression.lower().split(), value)
    fields_of(expression)
    return expression


@lru_cache(maxsize=1024)
def fields_of(expression: str) -> Fields:
    """Return what a canonical expression says. Raises InvalidSchedule if croniter refuses it."""
    from croniter import croniter  # late: not everybody who imports taskqueue has schedules

    try:
        expanded: list[list[Any]] = croniter.expand(expression, strict=True)[0]
    except Exception as error:  # croniter raises KeyError, TypeError and others for some texts
        reason = str(error).splitlines()[-1] if str(error) else type(error).__name__
        raise InvalidSchedule(
            f"Cron: {shown(expression)} is no cron expression, or never fires: {reason}"
        ) from None
    minutes, hours = _numbers(expanded[0], 60), _numbers(expanded[1], 24)
    seconds = _numbers(expanded[5], 60) if len(expanded) > 5 else [0]
    return Fields(
        hours=tuple(timedelta(hours=hour) for hour in hours),
        within_hour=tuple(
            timedelta(minutes=minute, seconds=second) for minute in minutes for second in seconds
        ),
        day_expressions=_day_expressions(expression, expanded),
    )


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
    days = croniter(expression, midnight, ret_type=datetime)
    while True:
        try:
            yield days.get_next()
        except (CroniterBadDateError, ValueError, OverflowError):
            return  # none within 50 years, or beyond the year 9999


def _numbers(values: list[Any], size: int) -> list[int]:
    return list(range(size)) if values == ["*"] else sorted(values)


def _check_form(expression: str, value: object) -> None:
    name = f"Cron: {shown(value)}"
    if not expression.strip():
        raise InvalidSchedule(f"Cron: the expression is empty. {_WRITE}")
    if not expression.isascii() or not expression.replace("\t", " ").isprintable():
        raise InvalidSchedule(f"{name} has characters that no cron expression has. {_WRITE}")
    if len(expression) > LONGEST_EXPRESSION:
        raise InvalidSchedule(
            f"{name} is longer than {LONGEST_EXPRESSION} characters. Use ranges and steps."
        )
    if expression.lstrip().startswith("@"):
        if expression.strip().lower() == "@reboot":
            raise InvalidSchedule(f"{name} is no time. {_WRITE}")
        hint = suggestion(expression.strip().lower(), _SHORT)
        raise InvalidSchedule(f"{name} is no short form of cron.{hint or f' {_WRITE}'}")


def _check_fields(fields: list[str], value: object) -> None:
    if len(fields) not in (5, 6):
        years = " Years are not supported: use start and end." if len(fields) == 7 else ""
        raise InvalidSchedule(
            f"Cron: {shown(value)} has {len(fields)} fields. {_WRITE} "
            f"A sixth field, at the end, is the second.{years}"
        )
    for part in ",".join([*fields[:4], _sunday_is_0(fields[4]), *fields[5:]]).split(","):
        if _DRAWN.fullmatch(part):
            raise InvalidSchedule(
                f"Cron: {shown(value)} leaves a time to be drawn ({part!r}). Write the number."
            )
        found = _RANGE.fullmatch(part)
        if found and _number(found[1]) == _number(found[2]):
            # croniter takes such a range for the whole cycle, other crons for the one value.
            raise InvalidSchedule(
                f"Cron: {shown(value)} has a range of one value ({part!r}). Write the value alone."
            )


def _sunday_is_0(of_week: str) -> str:
    """Return the days of the week so that a range from Sunday to itself can be seen."""
    return re.sub(r"\b7-", "0-", of_week)


def _number(text: str) -> str:
    return _NUMBERS.get(text, text).lstrip("0")
