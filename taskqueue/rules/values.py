"""The checks of rule values, and their canonical forms. They raise InvalidSchedule."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Any, NamedTuple

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.exceptions import LONGEST_DURATION, InvalidSchedule

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FULL_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_NUMBERS = {name: place for days in (DAYS, FULL_DAYS) for place, name in enumerate(days)}
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
# The shortest interval of rules that count elapsed time.
FINEST = timedelta(milliseconds=50)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d))?", re.ASCII)


def shown(value: object) -> str:
    """Return `value` for an error message: short, and without ever raising."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 120 else f"{text[:119]}…"


def moment(owner: str, name: str, value: object) -> datetime:
    """Return an aware datetime in UTC."""
    if not isinstance(value, datetime):
        raise InvalidSchedule(_(
            "{owner}: {name} must be an aware datetime, not {shown}.",
            owner=owner, name=name, shown=shown(value),
        ))  # fmt: skip
    try:
        if value.utcoffset() is None:
            raise InvalidSchedule(_(
                "{owner}: {name} must be an aware datetime, and {shown} has no time zone. Give it "
                "one, such as tzinfo=UTC.",
                owner=owner, name=name, shown=shown(value),
            ))  # fmt: skip
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidSchedule(_(
            "{owner}: {name} must lie in the years 1 to 9999 in UTC, and {shown} does not.",
            owner=owner, name=name, shown=shown(value),
        )) from None  # fmt: skip


def duration(owner: str, name: str, value: object, *, least: timedelta = SECOND) -> timedelta:
    """Return a timedelta of at least `least`. `value` is seconds, or a timedelta."""
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise InvalidSchedule(_(
            "{owner}: {name} must be a number of seconds or a timedelta, not {shown}.",
            owner=owner, name=name, shown=shown(value),
        ))  # fmt: skip
    try:
        span = value if isinstance(value, timedelta) else timedelta(seconds=value)
    except (ValueError, OverflowError):
        raise _not_within(owner, name, value, least) from None
    if span < least:
        finer = _("a second") if least == SECOND else _("50 milliseconds")
        raise InvalidSchedule(_(
            "{owner}: {name} must be at least {words}, not {shown}: a rule finer than {finer} is "
            "refused.",
            owner=owner, name=name, words=_words(least), shown=shown(value), finer=finer,
        ))  # fmt: skip
    if span.total_seconds() > LONGEST_DURATION:
        raise _not_within(owner, name, value, least)
    return span


def fine_duration(owner: str, name: str, value: object) -> timedelta:
    """Return a timedelta of at least 50 milliseconds."""
    return duration(owner, name, value, least=FINEST)


def _words(least: timedelta) -> str:
    seconds = least.total_seconds()
    return _("one second") if least == SECOND else _("{seconds:g} seconds", seconds=seconds)


def interval(owner: str, whole: object, units: dict[str, float]) -> timedelta:
    """Return the timedelta that is given either as `whole` or as the sum of the units."""
    given = {name: value for name, value in units.items() if value is False or value != 0}
    if whole is not None and given:
        raise InvalidSchedule(_(
            "{owner}: give either an interval or units, not both {shown} and {names}.",
            owner=owner, shown=shown(whole), names=", ".join(given),
        ))  # fmt: skip
    if whole is not None:
        return fine_duration(owner, _("the interval"), whole)
    if not given:
        raise InvalidSchedule(_(
            "{owner}: give an interval, such as {owner}(minutes=5).", owner=owner
        ))  # fmt: skip
    total = timedelta(0)
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidSchedule(_(
                "{owner}: {name} must be a number, not {shown}.",
                owner=owner, name=name, shown=shown(value),
            ))  # fmt: skip
        try:
            span = timedelta(**{name: value})
        except (ValueError, OverflowError):
            raise _not_within(owner, name, value, FINEST) from None
        if not 0 <= span.total_seconds() <= LONGEST_DURATION:
            raise _not_within(owner, name, value, FINEST)
        total += span
    return fine_duration(owner, _("the interval"), total)


def seconds(span: timedelta) -> int | float:
    """Return a duration in seconds for JSON, as an int if possible."""
    return span.total_seconds() if span.microseconds else span // SECOND


def clock_time(owner: str, name: str, value: object) -> time:
    """Return a naive time of whole seconds. `value` is a time, or text such as "09:30"."""
    example = _('Write a time of the wall clock, such as "09:30" or "17:05:30".')
    if isinstance(value, str) and (match := _TIME.fullmatch(value)):
        hour, minute, second = (int(part or 0) for part in match.groups())
        if hour < 24 and minute < 60 and second < 60:
            return time(hour, minute, second)
    if not isinstance(value, time):
        raise InvalidSchedule(_(
            "{owner}: {name} cannot be {shown}. {example}",
            owner=owner, name=name, shown=shown(value), example=example,
        ))  # fmt: skip
    if value.tzinfo is not None:
        raise InvalidSchedule(_(
            "{owner}: {name} must be a time without a zone, not {shown}: tz has the zone.",
            owner=owner, name=name, shown=shown(value),
        ))  # fmt: skip
    if value.microsecond:
        raise InvalidSchedule(_(
            "{owner}: {name} must be a whole second, not {shown}: a rule finer than a second is "
            "refused.",
            owner=owner, name=name, shown=shown(value),
        ))  # fmt: skip
    return value.replace(fold=0)


def week_days(owner: str, name: str, value: object) -> tuple[str, ...]:
    """Return day names in the order of the week.

    `value` is, for example, "mon-fri" or "mon,wed".
    """
    if not isinstance(value, str | Iterable):
        raise InvalidSchedule(_(
            '{owner}: {name} must be such as "mon-fri", not {shown}.',
            owner=owner, name=name, shown=shown(value),
        ))  # fmt: skip
    parts = value.split(",") if isinstance(value, str) else list(value)
    numbers: set[int] = set()
    for part in parts:
        numbers |= _day_range(owner, part)
    if not numbers:
        raise InvalidSchedule(_(
            '{owner}: {name} is empty. Name some, such as "mon-fri".', owner=owner, name=name
        ))  # fmt: skip
    return tuple(DAYS[number] for number in sorted(numbers))


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return ` Did you mean …?` for the nearest of `known`, or nothing."""
    return did_you_mean(str(name)[:100], list(known))


def _day_range(owner: str, part: object) -> set[int]:
    if not isinstance(part, str):
        raise InvalidSchedule(_(
            '{owner}: days must be names, such as "mon", not {shown}: numbers mean different days '
            "in different places.",
            owner=owner, shown=shown(part),
        ))  # fmt: skip
    names = [_day(owner, name) for name in part.split("-")]
    if len(names) > 2:
        raise InvalidSchedule(_(
            '{owner}: {shown} is not a range of days, such as "mon-fri".',
            owner=owner, shown=shown(part),
        ))  # fmt: skip
    first, last = names[0], names[-1]
    return {(first + step) % 7 for step in range((last - first) % 7 + 1)}


def _day(owner: str, name: str) -> int:
    wanted = name.strip().lower()
    if wanted in _DAY_NUMBERS:
        return _DAY_NUMBERS[wanted]
    hint = suggestion(wanted, _DAY_NUMBERS) or _(" The days are {names}.", names=", ".join(DAYS))
    raise InvalidSchedule(_(
        "{owner}: {shown} is not a day of the week.{hint}",
        owner=owner, shown=shown(name), hint=hint,
    ))  # fmt: skip


def _not_within(owner: str, name: str, value: object, least: timedelta) -> InvalidSchedule:
    if isinstance(value, float) and not math.isfinite(value):
        return InvalidSchedule(_(
            "{owner}: {name} must be a finite number, not {value!r}.",
            owner=owner, name=name, value=value,
        ))  # fmt: skip
    return InvalidSchedule(_(
        "{owner}: {name} must be at least {words} and at most 100 years ({longest_duration:,} "
        "seconds), not {shown}.",
        owner=owner, name=name, words=_words(least), longest_duration=LONGEST_DURATION,
        shown=shown(value),
    ))  # fmt: skip


class Part(NamedTuple):
    """How one value of a rule is checked, and how it is read from JSON.

    `canonical` is called with the rule's class, the value's name and the value; `from_json` with
    the name and the value. Both raise InvalidSchedule.
    """

    canonical: Callable[[str, str, Any], Any]
    to_json: Callable[[Any], Any]
    from_json: Callable[[str, Any], Any]


def text_from_json(name: str, value: Any) -> str:
    """Return the text. Raises InvalidSchedule."""
    if not isinstance(value, str):
        raise InvalidSchedule(_("{name} must be text, not {shown}.", name=name, shown=shown(value)))
    return value


def _seconds_from_json(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSchedule(_(
            "{name} must be a number of seconds, not {shown}.", name=name, shown=shown(value)
        ))  # fmt: skip
    return value


def _moment_from_json(name: str, value: Any) -> datetime:
    text = text_from_json(name, value)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSchedule(_(
            "{name} must be a datetime, such as '2026-12-01T09:00:00+00:00', not {shown}.",
            name=name, shown=shown(value),
        )) from None  # fmt: skip


def _days_from_json(name: str, value: Any) -> str | list[str]:
    if isinstance(value, list) and all(isinstance(day, str) for day in value):
        return value
    if isinstance(value, str):
        return value
    raise InvalidSchedule(_(
        "{name} must be names of days, not {shown}.", name=name, shown=shown(value)
    ))  # fmt: skip


MOMENT = Part(moment, datetime.isoformat, _moment_from_json)
LIMIT = Part(
    lambda owner, name, value: None if value is None else moment(owner, name, value),
    lambda value: None if value is None else value.isoformat(),
    lambda name, value: None if value is None else _moment_from_json(name, value),
)
LIMITS = {"start": LIMIT, "end": LIMIT}
DURATION = Part(duration, seconds, _seconds_from_json)
FINE_DURATION = Part(fine_duration, seconds, _seconds_from_json)
CLOCK = Part(clock_time, time.isoformat, text_from_json)
WEEK_DAYS = Part(week_days, list, _days_from_json)
