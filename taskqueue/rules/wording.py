"""Rules in plain English: durations, days, limits."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from taskqueue.rules.values import DAYS, FULL_DAYS

_UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000))
_SECOND = 1_000_000


def duration(span: timedelta) -> str:
    """Return such as "1 hour 30 minutes"."""
    left = span // timedelta(microseconds=1)
    parts = []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(_counted(str(count), name))
    if left or not parts:
        whole, rest = divmod(left, _SECOND)
        count_text = f"{whole}.{rest:06}".rstrip("0") if rest else str(whole)
        parts.append(_counted(count_text, "second"))
    return " ".join(parts)


def every(span: timedelta) -> str:
    """Return such as "Every 10 seconds", and "Every hour" rather than "Every 1 hour"."""
    length = duration(span)
    single = length.removeprefix("1 ")
    return f"Every {single if ' ' not in single else length}"


def days(names: tuple[str, ...]) -> str:
    """Return such as "Monday to Friday", for names in the order of the week."""
    numbers = [DAYS.index(name) for name in names]
    if len(numbers) == 7:
        return "every day"
    full = [FULL_DAYS[number].capitalize() for number in numbers]
    if len(numbers) > 2:
        # A range may go past Sunday, as in Friday to Monday: then some day begins it.
        for place in range(len(numbers)):
            turned = numbers[place:] + numbers[:place]
            if (turned[-1] - turned[0]) % 7 == len(numbers) - 1:
                return f"{full[place]} to {full[place - 1]}"
    return full[0] if len(full) == 1 else f"{', '.join(full[:-1])} and {full[-1]}"


def clock(value: time) -> str:
    """Return such as "09:00", with the seconds where there are some."""
    return value.isoformat("seconds" if value.second else "minutes")


def moment(value: datetime) -> str:
    """Return such as "2026-12-01 09:00:00 UTC", for a datetime in UTC."""
    return f"{value.replace(tzinfo=None).isoformat(' ')} UTC"


def limits(start: datetime | None, end: datetime | None) -> str:
    """Return such as "from 2026-12-01 09:00:00 UTC", or nothing where there is no limit."""
    parts = []
    if start is not None:
        parts.append(f"from {moment(start)}")
    if end is not None:
        parts.append(f"until {moment(end)}")
    return " ".join(parts)


def _counted(count: str, name: str) -> str:
    return f"{count} {name}" if count == "1" else f"{count} {name}s"
