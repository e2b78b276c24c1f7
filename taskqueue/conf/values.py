"""The checks of the settings, and their normal forms.

A check takes the place of a value, as messages name it, and the value; it returns the normal form
or raises `Mistake`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings as django_settings

from taskqueue.core.retries import seconds_of
from taskqueue.core.suggestions import did_you_mean

Check = Callable[[str, Any], Any]

DEFAULT_RETENTION: dict[str, timedelta | None] = {
    "succeeded": timedelta(days=7),
    "failed": timedelta(days=30),
    "cancelled": timedelta(days=7),
}
DEFAULT_THROTTLE_RATES: dict[str, str | None] = {
    "read": "1200/minute",
    "act": "600/minute",
    "enqueue": "1200/minute",
    "anonymous": "120/minute",
}
_LARGEST_COUNT = 2**31 - 1
# The largest value of the column for the level of a log line.
_LARGEST_LEVEL = 32767
_RATE = re.compile(r"[1-9][0-9]{0,6}/(s|sec|second|m|min|minute|h|hour|d|day)")
_LONGEST = 100 * 366 * 24 * 3600
# In characters.
SHORTEST_TOKEN = 16


class Mistake(ValueError):
    """A mistake in `TASKQUEUE`, with a hint that names the remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def accepted(
    is_valid: Callable[[Any], bool], wanted: str, *, normal: Callable[[Any], Any] = lambda v: v
) -> Check:
    """Return a check of values for which `is_valid` holds; its message says what is wanted."""

    def check(place: str, value: Any) -> Any:
        if is_valid(value):
            return normal(value)
        raise Mistake(f"{place} must be {wanted}, not {value!r}.")

    return check


def whole(lowest: int) -> Check:
    """Return the check of a whole number."""
    return accepted(
        lambda value: type(value) is int and lowest <= value <= _LARGEST_COUNT,
        f"a whole number of {lowest} or more",
    )


def duration(lowest: float) -> Check:
    """Return the check of a duration that is at least so many seconds long."""

    def is_valid(value: Any) -> bool:
        try:
            return lowest <= seconds_of(value) <= _LONGEST
        except TypeError:
            return False

    return accepted(
        is_valid,
        f"{lowest:g} or more seconds (or a timedelta)",
        normal=lambda value: timedelta(seconds=seconds_of(value)),
    )


def optional(check: Check) -> Check:
    """Return a check that lets None pass."""
    return lambda place, value: None if value is None else check(place, value)


def table(defaults: Mapping[str, Any], check: Check) -> Check:
    """Return the check of a dict that replaces some of the defaults; each value may be None."""

    def check_table(place: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Mistake(f"{place} must be a dict, not {value!r}.")
        values = dict(defaults)
        for key, item in value.items():
            if key not in defaults:
                keys = f"The keys are {', '.join(defaults)}."
                raise Mistake(f"{place} has no key {key!r}.", keys)
            values[key] = optional(check)(f"{place}[{key!r}]", item)
        return values

    return check_table


def database(place: str, value: Any) -> str:
    """Check that the alias is one of the project's."""
    if value in list(django_settings.DATABASES):
        return str(value)
    raise Mistake(
        f"{place} names {value!r}, which is not in DATABASES.",
        did_you_mean(value, django_settings.DATABASES).strip(),
    )


def log_level(place: str, value: Any) -> int | str:
    """Check the name or number of a level of `logging`."""
    levels = logging.getLevelNamesMapping()
    if type(value) is int and 0 < value <= _LARGEST_LEVEL:
        return value
    if isinstance(value, str) and levels.get(value):
        return value
    known = [name for name, number in levels.items() if number]
    common = "Choose one of DEBUG, INFO, WARNING and ERROR."
    raise Mistake(
        f"{place} must be the name or number of a logging level, not {value!r}.",
        did_you_mean(value, known, otherwise=common).strip(),
    )


def token(place: str, value: Any) -> str:
    """Check a secret; the message does not show it."""
    if isinstance(value, str) and len(value) >= SHORTEST_TOKEN:
        return value
    raise Mistake(f"{place} must be text of {SHORTEST_TOKEN} or more characters, or None.")


def is_rate(value: Any) -> bool:
    """Return whether it is a rate of Django REST framework."""
    return isinstance(value, str) and _RATE.fullmatch(value) is not None


def are_paths(value: Any) -> bool:
    """Return whether it is a list of texts that is not empty."""
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(type(path) is str for path in value)
