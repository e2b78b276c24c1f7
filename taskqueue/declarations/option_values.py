"""What each option may hold, by itself, and its normal form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from taskqueue.core.retries import Backoff, seconds_of
from taskqueue.declarations.payload import check_text, encode
from taskqueue.declarations.unique_keys import check_option, check_scope
from taskqueue.exceptions import LONGEST_DURATION, Duration, InvalidTask

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
LARGEST_METADATA = 16 * 1024
LONGEST_WORKER_NAME = 150
MOST_WORKERS = 1000
QUEUE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
Moment = datetime | Duration
"""A point in time, or the time from now until it."""
DURATIONS = frozenset(
    {
        "crash_delay",
        "timeout",
        "expires_after",
        "lease_duration",
        "ping_interval",
        "retention",
    }
)
MOMENTS = frozenset({"run_after", "deadline"})
_FLAGS = frozenset({"takes_context", "api", "atomic", "broadcast"})
_SMALLEST = {"timeout": 0.001, "lease_duration": 1.0, "ping_interval": 0.05}


def check_value(name: str, value: Any) -> Any:
    """The value in its normal form. Raises `InvalidTask` where the option cannot have it."""
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise InvalidTask(f"{name} must be True or False, not {value!r}.")
        return value
    if name in DURATIONS:
        smallest = _SMALLEST.get(name, 0.0)
        return None if value is None else check_duration(name, value, smallest=smallest)
    return _CHECKS[name](name, value)


def check_duration(name: str, value: Any, *, smallest: float = 0.0) -> timedelta:
    """The duration as a timedelta. Raises `InvalidTask`."""
    try:
        seconds = seconds_of(value)
    except TypeError as error:
        raise InvalidTask(f"{name}: {error}") from None
    if not smallest <= seconds <= LONGEST_DURATION:
        raise InvalidTask(
            f"{name} must be between {smallest:g} and {LONGEST_DURATION:,} seconds, not {value!r}."
        )
    return timedelta(seconds=seconds)


def _check_moment(name: str, value: Any) -> Moment | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        try:
            return check_duration(name, value)
        except InvalidTask:
            if isinstance(value, timedelta) and value < timedelta(0):
                return timedelta(0)
            raise
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidTask(f"{name} must be an aware datetime.")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidTask(f"{name} must lie in the years 1 to 9999, not {value!r}.") from None


def _check_run_after(name: str, value: Any) -> Moment | None:
    """A duration that is over, however it is written, means now."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and -math.inf < seconds_of(value) < 0:
        return timedelta(0)
    return _check_moment(name, value)


def _check_queue_name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not QUEUE_NAME.fullmatch(value):
        raise InvalidTask(
            f"{name} must be 1 to 100 letters, digits, '_', '-', '.' or ':', not {value!r}."
        )
    return value


def _check_priority(name: str, value: Any) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY
    ):
        raise InvalidTask(
            f"priority must be a whole number between {LOWEST_PRIORITY} and {HIGHEST_PRIORITY}."
        )
    return value


def _check_count(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise InvalidTask(f"{name} must be a whole number of 1 or more, not {value!r}.")
    return value


def _check_backoff(name: str, value: Any) -> Any:
    if value is None or isinstance(value, Backoff):
        return value
    if isinstance(value, type) or not callable(value):
        raise InvalidTask(
            "backoff must be a policy such as Exponential(base=2, cap=600), or a callable "
            f"(exception, task_result) -> duration, not {value!r}."
        )
    return value


def _check_classes(name: str, value: Any) -> tuple[type[BaseException], ...]:
    several = isinstance(value, Iterable) and not isinstance(value, type | str)
    classes = tuple(value) if several else (value,)
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise InvalidTask(f"{name} must hold exception classes, not {each!r}.")
    return classes


def _check_retry_for(name: str, value: Any) -> tuple[type[BaseException], ...] | None:
    return None if value is None else _check_classes(name, value)


def _check_unique_for(name: str, value: Any) -> str | timedelta:
    if value in ("finished", "started", "kept"):
        return str(value)
    if isinstance(value, str):
        raise InvalidTask(
            f"unique_for must be 'finished', 'started', 'kept' or a duration, not {value!r}."
        )
    return check_duration(name, value, smallest=0.001)


def _check_on_duplicate(name: str, value: Any) -> str:
    if value not in ("return", "raise", "replace"):
        raise InvalidTask(f"on_duplicate must be 'return', 'raise' or 'replace', not {value!r}.")
    return str(value)


def _check_restart(name: str, value: Any) -> str | None:
    if value not in (None, "failed", "all"):
        raise InvalidTask(f"restart must be None, 'failed' or 'all', not {value!r}.")
    return cast("str | None", value)


def _check_workers(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_WORKERS:
        raise InvalidTask(
            f"workers must be a whole number between 1 and {MOST_WORKERS}, not {value!r}."
        )
    return value


def _check_worker_names(name: str, value: Any) -> tuple[str, ...] | None:
    return None if value is None else check_worker_names(value)


def check_worker_names(value: Any) -> tuple[str, ...]:
    """The names, each once. Raises `InvalidTask` if they cannot be names of workers."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    names = tuple(dict.fromkeys(value)) if several else (value,)
    if not 1 <= len(names) <= MOST_WORKERS:
        raise InvalidTask(
            f"worker_names must hold 1 to {MOST_WORKERS} names, not {len(names)}; "
            "None stands for any worker."
        )
    for each in names:
        try:
            check_text(each, limit=LONGEST_WORKER_NAME, what="A name in worker_names")
        except (TypeError, ValueError) as error:
            raise InvalidTask(str(error)) from None
        if not each:
            raise InvalidTask("A name in worker_names must not be empty.")
    return names


def _check_metadata(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidTask(f"metadata must be a JSON object (a dict), not {value!r}.")
    text = encode(value, limit=LARGEST_METADATA, what="metadata")
    return cast(dict[str, Any], json.loads(text))


def _check_name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_.:<>-]{1,255}", value):
        raise InvalidTask(
            f"name must be 1 to 255 letters, digits, '_', '-', '.' or ':', not {value!r}."
        )
    return value


def _check_sensitive(name: str, value: Any) -> frozenset[str]:
    several = isinstance(value, Iterable) and not isinstance(value, str)
    names = tuple(value) if several else (value,)
    if not all(isinstance(each, str) for each in names):
        raise InvalidTask(f"sensitive must hold names of arguments, not {value!r}.")
    return frozenset(names)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "queue_name": _check_queue_name,
    "priority": _check_priority,
    "run_after": _check_run_after,
    "max_attempts": _check_count,
    "backoff": _check_backoff,
    "retry_for": _check_retry_for,
    "give_up_on": _check_classes,
    "max_crashes": _check_count,
    "deadline": _check_moment,
    "unique_key": check_option,
    "unique_scope": check_scope,
    "unique_for": _check_unique_for,
    "on_duplicate": _check_on_duplicate,
    "restart": _check_restart,
    "workers": _check_workers,
    "worker_names": _check_worker_names,
    "metadata": _check_metadata,
    "name": _check_name,
    "sensitive": _check_sensitive,
}
