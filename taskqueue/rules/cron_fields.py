"""Read cron expressions with croniter: the days, and the times of a day.

Expressions that croniter reads differently than other crons are refused first: it takes `*,mon#1`
for every first Monday, and `*/90` for every hour. croniter is only used for naive days, because
with aware datetimes it runs a daily 02:30 twice when the clock is put back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple

from taskqueue.core.refusals import joined, why
from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules.cron_errors import no_expression
from taskqueue.rules.values import shown, suggestion

HOUR = timedelta(hours=1)
_SIZES = {0: 60, 1: 24, 5: 60}
LONGEST_EXPRESSION = 1000
# Expressions whose times are drawn at random.
_DRAWN = re.compile(r"[hr](\(.*|/.*)?")
_RANGE = re.compile(r"(\w+)-(\w+)(/\d+)?", re.ASCII)
_STEP = re.compile(r".*/(\d+)", re.ASCII)
_WEEK = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_YEAR = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = {name: number for number, name in enumerate(_WEEK)}
_NUMBERS |= {name: number for number, name in enumerate(_YEAR, 1)}
_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_WRITE = _('Write five or six fields, such as "0 6 * * mon-fri".')


class _Field(NamedTuple):
    """The name of a field, its largest useful step, and the remedy for a larger one."""

    name: str
    largest_step: int
    remedy: str


_DAY_OF_WEEK = _Field(_("day of the week"), 7, "Use Every(days={number})")
_FIELDS = (
    _Field(_("minute"), 59, "Use Every(minutes={number})"),
    _Field(_("hour"), 23, "Use Every(hours={number})"),
    _Field(_("day of the month"), 30, "Use Every(days={number}), or write the one day"),
    _Field(_("month"), 12, "Write the months, such as 1,7"),
    _DAY_OF_WEEK,
    _Field(_("second"), 59, "Use Every(seconds={number})"),
)
_NAMES = [field.name for field in _FIELDS]


@dataclass(frozen=True)
class Fields:
    """The times of a day, and expressions for the days at midnight, of a cron expression."""

    hours: tuple[timedelta, ...]
    within_hour: tuple[timedelta, ...]
    day_expressions: tuple[str, ...]

    def days_from(self, wall: datetime) -> Iterator[datetime]:
        """Return the days that fit, as their midnights, from that of `wall` on, increasing."""
        midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
        days = merge(*(_days(expression, midnight) for expression in self.day_expressions))
        return (day for day, _ in groupby(days))

    def is_steady_through(self, shift: timedelta) -> bool:
        """Return whether all hours have the same times, also if they begin `shift` later."""
        turned = {(within + shift) % HOUR for within in self.within_hour}
        return len(self.hours) == 24 and turned == set(self.within_hour)


def canonical_expression(value: object) -> str:
    """Return the expression with single spaces, short forms written out.

    Raises InvalidSchedule for a text that is not one, that leaves its times open, or that other
    crons read differently.
    """
    if not isinstance(value, str):
        raise InvalidSchedule(_(
            "Cron: the expression must be text, not {shown}. {write}",
            shown=shown(value), write=_WRITE,
        ))  # fmt: skip
    expression = _SHORT.get(value.strip().lower(), value)
    _check_text(expression, f"Cron: {shown(value)}")
    try:
        return _checked(expression.split(), f"Cron: {shown(value)}")
    except InvalidSchedule as error:
        moved = _seconds_moved(expression.split())
        if moved is None:
            raise
        reason = why(error)
        reason = reason if reason.endswith(".") else joined((reason, "."), "")
    # Their days of the week may be numbered from 1, ours from 0.
    days = (
        _(" Write the days of the week by name.")
        if re.search(r"(^|[,-])\d", moved.split()[4])
        else ""
    )
    raise InvalidSchedule(_(
        "{reason} If its first field is the second, as Quartz, Spring and PowerJob write it, "
        "write it last: {moved!r}.{days}",
        reason=reason, moved=moved, days=days,
    ))  # fmt: skip


def _checked(texts: list[str], name: str) -> str:
    _check_fields([text.lower() for text in texts], name)
    canonical = " ".join(texts)
    fields_of(canonical)
    return canonical


def _seconds_moved(texts: list[str]) -> str | None:
    """Return an expression that has its seconds first as ours, if it can be read so."""
    if len(texts) == 7 and texts[6] in ("*", "?"):
        texts = texts[:6]  # The year.
    if len(texts) != 6:
        return None
    moved = [text.replace("?", "*") for text in (*texts[1:], texts[0])]
    try:
        return _checked(moved, "")
    except InvalidSchedule:
        return None


@lru_cache(maxsize=1024)
def fields_of(expression: str) -> Fields:
    """Return the fields of a canonical expression. Raises InvalidSchedule for a wrong one."""
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
    """Return croniter's values of each field, `["*"]` for a field without restriction.

    Raises InvalidSchedule whatever croniter raises.
    """
    from croniter import croniter  # late: not everybody who imports taskqueue has schedules

    try:
        values: list[list[Any]] = croniter.expand(expression, strict=True)[0]
    except Exception:  # croniter raises KeyError, TypeError and others for some texts
        raise no_expression(expression, _NAMES) from None
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
    except Exception:
        raise no_expression(expression, _NAMES) from None


def _numbers(expression: str, values: list[list[Any]], position: int) -> list[int]:
    if values[position] == ["*"]:
        return list(range(_SIZES[position]))
    if not all(isinstance(value, int) for value in values[position]):
        raise no_expression(expression, _NAMES)
    return sorted(values[position])


def _check_text(expression: str, name: str) -> None:
    if not expression.strip():
        raise InvalidSchedule(_("Cron: the expression is empty. {write}", write=_WRITE))
    if not expression.isascii() or not expression.replace("\t", " ").isprintable():
        raise InvalidSchedule(_(
            "{name} has characters that no cron expression has. {write}", name=name, write=_WRITE
        ))  # fmt: skip
    if len(expression) > LONGEST_EXPRESSION:
        raise InvalidSchedule(_(
            "{name} is longer than {longest_expression} characters. Use ranges and steps.",
            name=name, longest_expression=LONGEST_EXPRESSION,
        ))  # fmt: skip
    if expression.lstrip().startswith("@"):
        if expression.strip().lower() == "@reboot":
            raise InvalidSchedule(_("{name} is no time. {write}", name=name, write=_WRITE))
        hint = suggestion(expression.strip().lower(), _SHORT)
        raise InvalidSchedule(_(
            "{name} is no short form of cron.{hint}",
            name=name, hint=hint or _(" {hint}", hint=_WRITE),
        ))  # fmt: skip


def _check_fields(texts: list[str], name: str) -> None:
    if len(texts) not in (5, 6):
        years = _(" Years are not supported: use start and end.") if len(texts) == 7 else ""
        number = len(texts)
        fields = _("1 field") if number == 1 else _("{number} fields", number=number)
        raise InvalidSchedule(_(
            "{name} has {fields}. {write} A sixth field, at the end, is the second.{years}",
            name=name, fields=fields, write=_WRITE, years=years,
        ))  # fmt: skip
    if texts[5:] and "?" in texts[5]:
        raise InvalidSchedule(_(
            "{name} has '?' for the second, which is its sixth field.", name=name
        ))  # fmt: skip
    for field, text in zip(_FIELDS, texts, strict=False):
        parts = text.split(",")
        if len(parts) > 1 and ("*" in parts or "?" in parts):
            # croniter mixes them up: "*,mon#1" is the first Monday alone.
            raise InvalidSchedule(_(
                "{name} has '*' or '?' in the list {text!r}. Write '*' alone for every value, or "
                "leave it out of the list.",
                name=name, text=text,
            ))  # fmt: skip
        for part in parts:
            _check_part(part, field, name)


def _check_part(part: str, field: _Field, name: str) -> None:
    if _DRAWN.fullmatch(part):
        raise InvalidSchedule(_(
            "{name} draws a time at random ({part!r}). Write the number.", name=name, part=part
        ))  # fmt: skip
    step = _STEP.fullmatch(part)
    if step and int(step[1]) > field.largest_step:
        # croniter takes the first value alone: "*/90" minutes would be every hour.
        raise InvalidSchedule(_(
            "{name} has a step that the {field} cannot hold ({part!r}; at most {largest_step}). "
            "{remedy}.",
            name=name, field=field.name, part=part, largest_step=field.largest_step,
            remedy=_(field.remedy, number=int(step[1])),
        ))  # fmt: skip
    match = _RANGE.fullmatch(part)
    first, last = (_number(match[1]), _number(match[2])) if match else (None, None)
    if first is None or last is None:
        return
    if first == last or (field is _DAY_OF_WEEK and first == 7 and last == 0):
        # croniter takes such a range for the whole cycle, other crons for the one value.
        raise InvalidSchedule(_(
            "{name} has a range of one value ({part!r}). Write the value alone.",
            name=name, part=part,
        ))  # fmt: skip
    if field is _DAY_OF_WEEK:  # Sunday begins the week or ends it
        first, last = first % 7, last or 7
    if "/" in part and first > last:
        # croniter miscounts past the end: "sat-mon/2" is Saturday alone.
        raise InvalidSchedule(_(
            "{name} has a step over a range that goes past the end ({part!r}). Write the values "
            "one by one.",
            name=name, part=part,
        ))  # fmt: skip


def _number(text: str) -> int | None:
    """Return the number of a name or of digits, None for anything else."""
    return int(text) if text.isdigit() else _NUMBERS.get(text)
