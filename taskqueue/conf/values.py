"""The checks of the settings, and their normal forms."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings as django_settings

from taskqueue.core.retries import seconds_of
from taskqueue.core.suggestions import did_you_mean

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
_DURATIONS = {
    # name: smallest value in seconds
    "POLL_INTERVAL": 0.01,
    "LEASE_DURATION": 1.0,
    "PING_INTERVAL": 0.05,
    "TAKEOVER_INTERVAL": 0.1,
    "SHUTDOWN_TIMEOUT": 0.0,
    "STOP_GRACE": 0.0,
    "KILL_GRACE": 0.0,
    "CRASH_DELAY": 0.0,
    "PARK_DELAY": 0.1,
    "PARK_LIMIT": 1.0,
}
_COUNTS = {
    # name: smallest value
    "CONCURRENCY": 1,
    "MAX_ATTEMPTS": 1,
    "MAX_CRASHES": 1,
    "MAX_ARGUMENTS": 2,
    "MAX_RESULT": 2,
    "MAX_LOG": 0,
    "MAX_TRACEBACK": 256,
}
_LARGEST_COUNT = 2**31 - 1
# The largest value of the column for the level of a log line.
_LARGEST_LEVEL = 32767
_RATE = re.compile(r"[1-9][0-9]{0,6}/(s|sec|second|m|min|minute|h|hour|d|day)")
_LONGEST = 100 * 366 * 24 * 3600
# Characters.
SHORTEST_TOKEN = 16


class Mistake(ValueError):
    """A mistake in `TASKQUEUE`, with a hint that names the remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def checked(name: str, value: Any) -> Any:
    """Return the value of a setting in its normal form. Raises `Mistake`."""
    if name in _DURATIONS:
        return None if name == "POLL_INTERVAL" and value is None else _duration(name, value)
    if name in _COUNTS:
        if type(value) is not int or not _COUNTS[name] <= value <= _LARGEST_COUNT:
            raise Mistake(
                f"TASKQUEUE[{name!r}] must be a whole number of {_COUNTS[name]} or more, "
                f"not {value!r}."
            )
        return value
    if name == "LOG_LEVEL":
        return _log_level(value)
    if name == "RETENTION":
        return _retention(value)
    if name in _OF_THE_API:
        return _OF_THE_API[name](value)
    if name == "POOL" and value not in ("process", "thread"):
        raise Mistake(f"TASKQUEUE['POOL'] must be 'process' or 'thread', not {value!r}.")
    if name == "DATABASE" and value not in list(django_settings.DATABASES):
        raise Mistake(
            f"TASKQUEUE['DATABASE'] names {value!r}, which is not in DATABASES.",
            did_you_mean(value, django_settings.DATABASES).strip(),
        )
    if name == "CLAIM_AHEAD" and not (
        value == "auto" or (type(value) is int and 0 <= value <= 10_000)
    ):
        raise Mistake(
            "TASKQUEUE['CLAIM_AHEAD'] must be 'auto' or a whole number between 0 and 10000, "
            f"not {value!r}."
        )
    return value


def _duration(name: str, value: Any) -> timedelta:
    smallest = _DURATIONS.get(name, 0.0)
    try:
        seconds = seconds_of(value)
    except TypeError:
        seconds = -1.0
    if not smallest <= seconds <= _LONGEST:
        raise Mistake(
            f"TASKQUEUE[{name!r}] must be {smallest:g} or more seconds (or a timedelta), "
            f"not {value!r}."
        )
    return timedelta(seconds=seconds)


def _log_level(value: Any) -> int | str:
    levels = logging.getLevelNamesMapping()
    if type(value) is int and 0 < value <= _LARGEST_LEVEL:
        return value
    if isinstance(value, str) and levels.get(value):
        return value
    known = [name for name, number in levels.items() if number]
    common = "Choose one of DEBUG, INFO, WARNING and ERROR."
    raise Mistake(
        f"TASKQUEUE['LOG_LEVEL'] must be the name or number of a logging level, not {value!r}.",
        did_you_mean(value, known, otherwise=common).strip(),
    )


def _retention(value: Any) -> dict[str, timedelta | None]:
    if not isinstance(value, Mapping):
        raise Mistake(f"TASKQUEUE['RETENTION'] must be a dict, not {value!r}.")
    retention = dict(DEFAULT_RETENTION)
    for status, kept in value.items():
        if status not in DEFAULT_RETENTION:
            raise Mistake(
                f"TASKQUEUE['RETENTION'] has no key {status!r}.",
                f"The keys are {', '.join(DEFAULT_RETENTION)}.",
            )
        retention[status] = None if kept is None else _duration("RETENTION", kept)
    return retention


def _throttle_rates(value: Any) -> dict[str, str | None]:
    if not isinstance(value, Mapping):
        raise Mistake(f"TASKQUEUE['API_THROTTLE_RATES'] must be a dict, not {value!r}.")
    rates = dict(DEFAULT_THROTTLE_RATES)
    for scope, rate in value.items():
        if scope not in DEFAULT_THROTTLE_RATES:
            raise Mistake(
                f"TASKQUEUE['API_THROTTLE_RATES'] has no key {scope!r}.",
                f"The keys are {', '.join(DEFAULT_THROTTLE_RATES)}.",
            )
        if rate is not None and not (isinstance(rate, str) and _RATE.fullmatch(rate)):
            raise Mistake(
                f"TASKQUEUE['API_THROTTLE_RATES'][{scope!r}] must be such as '600/minute', or "
                f"None for no limit, not {rate!r}."
            )
        rates[scope] = rate
    return rates


def _authentication(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, list | tuple) and value and all(type(path) is str for path in value):
        return tuple(value)
    raise Mistake(
        "TASKQUEUE['API_AUTHENTICATION'] must be a list of the paths of authentication classes, "
        f"or None for the project's own, not {value!r}."
    )


def _long_polls(value: Any) -> int | None:
    if value is None or (type(value) is int and value >= 0):
        return value
    raise Mistake(
        "TASKQUEUE['API_LONG_POLLS'] must be a whole number of 0 or more, or None for as many as "
        f"suit the web server, not {value!r}."
    )


def _token(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and len(value) >= SHORTEST_TOKEN):
        return value
    # Not its text: it may be the secret itself.
    raise Mistake(
        f"TASKQUEUE['METRICS_TOKEN'] must be text of {SHORTEST_TOKEN} or more characters, or None."
    )


_OF_THE_API = {
    "API_AUTHENTICATION": _authentication,
    "API_LONG_POLLS": _long_polls,
    "API_THROTTLE_RATES": _throttle_rates,
    "METRICS_TOKEN": _token,
}
