"""Rules in plain English: durations, days, limits, and by cron_descriptor cron expressions.

cron_descriptor, which has other languages too, reads each field by itself, and describes every step
as a pace: `*/40` minutes as "every 40 minutes", `wed-fri/2` as every second week. Such fields are
written out before it is called.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import Any

from taskqueue.rules.cron_fields import expanded
from taskqueue.rules.values import DAYS, FULL_DAYS

_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}


def duration(span: timedelta) -> str:
    """Return, for example, "1 hour 30 minutes"."""
    parts = []
    for name, size in _UNITS.items():
        count, span = divmod(span, size)
        if count:
            parts.append(_counted(str(count), name))
    if span or not parts:
        seconds = f"{span.total_seconds():.6f}".rstrip("0").rstrip(".")
        parts.append(_counted(seconds, "second"))
    return " ".join(parts)


def every(span: timedelta) -> str:
    """Return, for example, "Every 10 seconds", and "Every hour" instead of "Every 1 hour"."""
    length = duration(span)
    single = length.removeprefix("1 ")
    return f"Every {single if ' ' not in single else length}"


def days(names: tuple[str, ...]) -> str:
    """Return, for example, "Monday to Friday" for names in the order of the week."""
    numbers = [DAYS.index(name) for name in names]
    if len(numbers) == 7:
        return "every day"
    full = [FULL_DAYS[number].capitalize() for number in numbers]
    if len(numbers) > 2:
        # A range may extend past Sunday, such as Friday to Monday.
        for place in range(len(numbers)):
            turned = numbers[place:] + numbers[:place]
            if (turned[-1] - turned[0]) % 7 == len(numbers) - 1:
                return f"{full[place]} to {full[place - 1]}"
    return full[0] if len(full) == 1 else f"{', '.join(full[:-1])} and {full[-1]}"


def clock(value: time) -> str:
    """Return, for example, "09:00", with the seconds unless they are zero."""
    return value.isoformat("seconds" if value.second else "minutes")


def moment(value: datetime) -> str:
    """Return, for example, "2026-12-01 09:00:00 UTC" for a datetime in UTC."""
    return f"{value.replace(tzinfo=None).isoformat(' ')} UTC"


def limits(start: datetime | None, end: datetime | None) -> str:
    """Return, for example, "from 2026-12-01 09:00:00 UTC", or "" without limits."""
    limits = {"from": start, "until": end}
    return " ".join(f"{word} {moment(at)}" for word, at in limits.items() if at is not None)


def _counted(count: str, name: str) -> str:
    return f"{count} {name}" if count == "1" else f"{count} {name}s"


# By position of the field: its first value and its number of values, if a step may be a pace.
_CYCLES = {0: (0, 60), 1: (0, 24), 3: (1, 12), 5: (0, 60)}
_HOUR, _DAY, _DAY_OF_WEEK = 1, 2, 4
_PLAIN_DAY_OF_WEEK = re.compile(r"[a-z]{3}(-[a-z]{3})?|[0-7](-[0-7])?")
_LONGEST_LIST = 6


@lru_cache(maxsize=1024)
def described(expression: str, locale: str = "en_US") -> str:
    """Return the expression in words, with a 24-hour clock, or itself if that fails."""
    from cron_descriptor import ExpressionDescriptor, Options  # late: only pages need it

    options = Options(locale_code=locale, use_24hour_time_format=True)
    try:
        fields = _plain(expression.lower().split(), expanded(expression))
        if fields is None:
            return expression
        second_first = " ".join([*fields[5:], *fields[:5]]).upper()
        return str(ExpressionDescriptor(second_first, options).get_description())
    except Exception:  # for any expression that it cannot describe
        return expression


def _plain(fields: list[str], values: list[list[Any]]) -> list[str] | None:
    """Return fields that cron_descriptor describes correctly, or None if that is impossible."""
    if _is_beyond_words(fields):
        return None
    plain = [
        _plain_field(field, numbers, position)
        for position, (field, numbers) in enumerate(zip(fields, values, strict=True))
    ]
    if plain[_DAY] != "*" and _are_numbers(values[_DAY_OF_WEEK]):
        # It says "or on" before single days, but treats a range as an additional condition.
        plain[_DAY_OF_WEEK] = ",".join(map(str, values[_DAY_OF_WEEK]))
    if "," in plain[_HOUR]:
        # A whole hour or one time of the clock: "at 09:00" would be wrong for a whole hour.
        whole = any(char in field for field in (plain[0], *plain[5:]) for char in "*/")
        plain[_HOUR] = ",".join(
            f"{hour}-{hour}" if whole else str(hour) for hour in sorted(values[_HOUR])
        )
    return plain


def _is_beyond_words(fields: list[str]) -> bool:
    """Return whether cron_descriptor cannot describe the expression correctly."""
    of_month, of_week = fields[_DAY], fields[_DAY_OF_WEEK]
    nth = "#" in of_week or re.search(r"l\d", of_week)
    if nth and ("," in of_week or "-" in of_week or of_month not in "*?"):
        return True
    return "," in of_month and "l" in of_month


def _plain_field(field: str, values: list[Any], position: int) -> str:
    if "#" in field or not _are_numbers(values) or (position == _DAY and "w" in field):
        return "*" if values == ["*"] else field
    if position == _DAY_OF_WEEK and re.search(r"l\d", field):
        return field
    if "/" in field:
        return field if _is_a_pace(field, values, position) else _written_out(field, values)
    if position == _DAY_OF_WEEK and not _PLAIN_DAY_OF_WEEK.fullmatch(field):
        return _ranges(values)
    return _ranges(values) if position == _DAY and "l" in field else field


def _are_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, int) for value in values)


def _is_a_pace(field: str, values: list[int], position: int) -> bool:
    """Return whether a field with a step has a steady pace, within its range if it has one."""
    span, _, step = field.partition("/")
    if position not in _CYCLES or "," in field or int(step) == 1:
        return False
    if "-" in span:
        return len(values) > 1
    first, size = _CYCLES[position]
    return size % int(step) == 0 and min(values) - first < int(step)


def _written_out(field: str, values: list[int]) -> str:
    """Return the values, or for many values with one step, the limits and the step."""
    if len(values) > _LONGEST_LIST and "," not in field and not field.endswith("/1"):
        step = field.partition("/")[2]
        return f"{min(values)}-{max(values)}/{step}"
    return _ranges(values)


def _ranges(values: list[int]) -> str:
    """Return a list of the values, with three or more consecutive ones as a range."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )
