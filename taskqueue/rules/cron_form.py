"""What is refused of a cron expression before croniter reads it.

croniter takes more than it means: `*,mon#1` for every first Monday, `*/90` for every hour.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules.values import shown, suggestion

LONGEST_EXPRESSION = 1000
# What is due at times that are drawn, not determined by the expression.
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
_WRITE = 'Write five or six fields, such as "0 6 * * mon-fri".'


@dataclass(frozen=True)
class _Field:
    """What a field is called, its largest step that comes to more than its first value or goes
    round once, and how else to write a larger one."""

    name: str
    largest_step: int
    remedy: str


_MONTHS = "Write the months, such as 1,7"
_FIELDS = (
    _Field("minute", 59, "Use Every(minutes={})"),
    _Field("hour", 23, "Use Every(hours={})"),
    _Field("day of the month", 30, "Use Every(days={}), or write the one day"),
    _Field("month", 12, _MONTHS),
    _Field("day of the week", 7, "Use Every(days={})"),
    _Field("second", 59, "Use Every(seconds={})"),
)
_DAY_OF_WEEK = _FIELDS[4]


def well_formed(value: object) -> str:
    """Return the expression with single spaces, short forms written out.

    Raises InvalidSchedule for one that has not the form of an expression, that leaves its times
    open, or that other crons read otherwise than croniter.
    """
    if not isinstance(value, str):
        raise InvalidSchedule(f"Cron: the expression must be text, not {shown(value)}. {_WRITE}")
    expression = _SHORT.get(value.strip().lower(), value)
    _check_text(expression, f"Cron: {shown(value)}")
    _check_fields(expression.lower().split(), f"Cron: {shown(value)}")
    return " ".join(expression.split())


def _check_text(expression: str, name: str) -> None:
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


def _check_fields(texts: list[str], name: str) -> None:
    if len(texts) not in (5, 6):
        years = " Years are not supported: use start and end." if len(texts) == 7 else ""
        raise InvalidSchedule(
            f"{name} has {len(texts)} fields. {_WRITE} "
            f"A sixth field, at the end, is the second.{years}"
        )
    for field, text in zip(_FIELDS, texts, strict=False):
        parts = text.split(",")
        if len(parts) > 1 and ("*" in parts or "?" in parts):
            # croniter mixes them up: "*,mon#1" is the first Monday alone.
            raise InvalidSchedule(
                f"{name} has '*' or '?' in the list {text!r}. "
                "Write '*' alone for every value, or leave it out of the list."
            )
        for part in parts:
            _check_part(part, field, name)


def _check_part(part: str, field: _Field, name: str) -> None:
    if _DRAWN.fullmatch(part):
        raise InvalidSchedule(f"{name} leaves a time to be drawn ({part!r}). Write the number.")
    step = _STEP.fullmatch(part)
    if step and int(step[1]) > field.largest_step:
        # croniter takes the first value alone: "*/90" minutes would be every hour.
        raise InvalidSchedule(
            f"{name} has a step that the {field.name} cannot hold ({part!r}; at most "
            f"{field.largest_step}). {field.remedy.format(int(step[1]))}."
        )
    found = _RANGE.fullmatch(part)
    if found:
        _check_range(found, field, name)


def _check_range(found: re.Match[str], field: _Field, name: str) -> None:
    first, last = _number(found[1]), _number(found[2])
    if first is None or last is None:
        return
    if first == last or (field is _DAY_OF_WEEK and first == 7 and last == 0):
        # croniter takes such a range for the whole cycle, other crons for the one value.
        raise InvalidSchedule(
            f"{name} has a range of one value ({found[0]!r}). Write the value alone."
        )
    if field is _DAY_OF_WEEK:  # Sunday begins the week or ends it
        first, last = first % 7, last or 7
    if found[3] and first > last:
        # croniter miscounts past the end: "sat-mon/2" is Saturday alone.
        raise InvalidSchedule(
            f"{name} has a step over a range that goes past the end ({found[0]!r}). "
            "Write the values one by one."
        )


def _number(text: str) -> int | None:
    """Return the number of a name or of digits, None for anything else."""
    return int(text) if text.isdigit() else _NUMBERS.get(text)
