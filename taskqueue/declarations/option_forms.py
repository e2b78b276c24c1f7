"""The form of each option in JSON and in text: what faces read, and what a schedule stores.

JSON: durations are seconds; a moment is seconds from now, or ISO 8601 with an offset; a backoff is
`{"policy": "exponential", "base": 2, "cap": 600}`; `retry_for` is a list of paths of exception
classes. Text, where a person types: `5m`, `exponential(base=2, cap=600)`,
`ConnectionError, shop.errors.Busy`. Nothing is imported from a value.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

from taskqueue.core.retries import POLICIES, Backoff, class_path
from taskqueue.core.suggestions import nearest
from taskqueue.declarations.discovery import discover_tasks
from taskqueue.declarations.option_values import DURATIONS, MOMENTS
from taskqueue.exceptions import LONGEST_DURATION, InvalidTask

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)")
_POLICY = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_UNIQUE_FOR = ("finished", "started", "kept")


def option_from_json(name: str, value: Any) -> Any:
    """Return the value as `.using()` takes it; a value of Python's own stays. Raises `InvalidTask`.

    What the option may hold is for `.using()` to check.
    """
    read = _READERS.get(name)
    return value if read is None else read(name, value)


def options_from_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as `.using()` takes them. Raises `InvalidTask`."""
    return {name: option_from_json(name, value) for name, value in options.items()}


def option_to_json(value: Any) -> Any:
    """Return the value of an option in JSON; a text for people where it has no such form."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Backoff):
        return value.snapshot()
    if isinstance(value, type) and issubclass(value, BaseException):
        return class_path(value)
    if isinstance(value, tuple | list):
        return [option_to_json(each) for each in value]
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        # Not as it shows itself, where that tells its address: it must look the same everywhere.
        name = getattr(value, "__qualname__", "")
        return f"{value.__module__}.{name}" if name else str(value)


def duration_from_text(text: str) -> timedelta:
    """Return what `90`, `90s`, `10m`, `2h`, `1.5d` or `1w` stands for. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no duration: write 90, 90s, 10m, 2h, 1d or 1w.")
    seconds = float(found[1]) * UNITS[found[2]]
    if seconds > LONGEST_DURATION:
        raise ValueError(f"{text!r} is too long: more than 100 years.")
    return timedelta(seconds=seconds)


def is_duration(text: str) -> bool:
    """Whether the text is written as a duration."""
    return _DURATION.fullmatch(text.strip()) is not None


def backoff_from_json(value: Mapping[str, Any]) -> Backoff:
    """Return the policy that is written as it is stored. Raises `InvalidTask`."""
    values = dict(value)
    name = values.pop("policy", None)
    if not isinstance(name, str) or name not in POLICIES:
        near = nearest(name, POLICIES) if isinstance(name, str) else ""
        hint = f" Did you mean {near!r}?" if near else ""
        raise InvalidTask(f"backoff: policy must be one of {', '.join(POLICIES)}.{hint}")
    policy = POLICIES[name]
    known = [each.name for each in fields(policy)]
    for given in values:
        if given not in known:
            near = nearest(given, known)
            hint = f"Did you mean {near!r}?" if near else f"There are {', '.join(known)}."
            raise InvalidTask(f"backoff: {name} has no {given!r}. {hint}")
    try:
        return policy(**values)
    except (TypeError, ValueError) as error:
        raise InvalidTask(f"backoff: {error}") from None


def exception_class(path: object) -> type[BaseException]:
    """Return the loaded exception class of that path; a bare name is a built-in one.

    Nothing is imported but the project's own `tasks` modules, and no attribute is computed: data
    must not choose what code runs. Raises `InvalidTask`.
    """
    if isinstance(path, str):
        found = _loaded_class(path)
        if found is None:
            discover_tasks()
            found = _loaded_class(path)
        if found is not None:
            return found
    raise InvalidTask(
        f"retry_for: {path!r} is no exception class that is loaded here. Write the whole path of "
        "one that the project's tasks import, such as 'shop.errors.Busy', or the name of a "
        "built-in one, such as 'ConnectionError'. Nothing is imported for it."
    )


def _loaded_class(path: str) -> type[BaseException] | None:
    parts = path.split(".")
    for place in reversed(range(len(parts))):
        found: Any = sys.modules.get(".".join(parts[:place]) or "builtins")
        for part in parts[place:]:
            found = vars(found).get(part) if isinstance(found, type | ModuleType) else None
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
    return None


def _duration(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return duration_from_text(value)
    except ValueError as error:
        raise InvalidTask(f"{name}: {error}") from None


def _moment(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if is_duration(value):
        return _duration(name, value)
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise InvalidTask(
            f"{name}: {value!r} is neither a duration such as 5m nor a moment such as "
            "2026-03-01T12:00+00:00."
        ) from None


def _unique_for(name: str, value: Any) -> Any:
    return value if value in _UNIQUE_FOR or not is_duration(str(value)) else _duration(name, value)


def _backoff(name: str, value: Any) -> Any:
    if isinstance(value, str):
        value = _policy_of_text(value)
    if isinstance(value, Mapping):
        return backoff_from_json(value)
    if value is None or isinstance(value, Backoff) or callable(value):
        return value
    raise InvalidTask(
        f"backoff must be a policy, not {value!r}: write it as exponential(base=2, cap=600), in "
        'JSON also as {"policy": "exponential", "base": 2, "cap": 600}.'
    )


def _policy_of_text(text: str) -> dict[str, Any]:
    """Read `fixed(5)` or `exponential(base=2, cap=10m)` as JSON has it."""
    found = _POLICY.fullmatch(text)
    if found is None:
        raise InvalidTask(
            f"backoff: {text!r} is no policy: write it as exponential(base=2, cap=600)."
        )
    policy = found[1].lower()
    values: dict[str, Any] = {"policy": policy}
    for part in filter(None, map(str.strip, (found[2] or "").split(","))):
        key, equals, number = part.rpartition("=")
        own = key.strip() if equals else "seconds" if policy == "fixed" else "base"
        values[own] = _duration("backoff", number.strip()).total_seconds()
    return values


def _retry_for(name: str, value: Any) -> Any:
    if isinstance(value, str):
        value = [each.strip() for each in value.split(",") if each.strip()]
    if not isinstance(value, list | tuple):
        return value
    return tuple(exception_class(each) if isinstance(each, str) else each for each in value)


_READERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(DURATIONS, _duration),
    **dict.fromkeys(MOMENTS, _moment),
    "unique_for": _unique_for,
    "backoff": _backoff,
    "retry_for": _retry_for,
}
