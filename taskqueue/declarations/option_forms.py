"""Values of options as JSON and as text, for all interfaces and for schedules.

In JSON, durations are seconds; a moment is seconds from now, or ISO 8601 with an offset; a backoff
is `{"policy": "exponential", "base": 2, "cap": 600}`; `retry_for` is a list of paths of exception
classes. In text: `5m`, `exponential(base=2, cap=600)`, `ConnectionError, shop.errors.Busy`.
Nothing is imported to read a value.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

from taskqueue.core.durations import duration_from_text
from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.core.retries import NUMBERS, POLICIES, Backoff, class_path
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.discovery import discover_tasks
from taskqueue.exceptions import InvalidTask

_POLICY = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def option_to_json(value: Any) -> Any:
    """Return the value of an option in JSON, or as readable text if it has no JSON form."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Backoff):
        return value.snapshot()
    if isinstance(value, type) and issubclass(value, BaseException):
        return class_path(value)
    if isinstance(value, tuple | list):
        return [option_to_json(item) for item in value]
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        # Not its repr, which may show an address in memory: it must look the same everywhere.
        name = getattr(value, "__qualname__", "")
        return f"{value.__module__}.{name}" if name else str(value)


def backoff_from_json(value: Mapping[str, Any]) -> Backoff:
    """Return the policy of `{"policy": "fixed", "seconds": 5}`. Raises `InvalidTask`."""
    values = dict(value)
    name = values.pop("policy", None)
    if not isinstance(name, str) or name not in POLICIES:
        hint = did_you_mean(name, POLICIES) if isinstance(name, str) else ""
        raise InvalidTask(_(
            "backoff: policy must be one of {names}.{hint}", names=", ".join(POLICIES), hint=hint
        ))  # fmt: skip
    policy = POLICIES[name]
    known = [field.name for field in fields(policy)]
    for key in values:
        if key not in known:
            hint = did_you_mean(
                key, known, otherwise=_("Choose from {names}.", names=", ".join(known))
            )
            raise InvalidTask(_(
                "backoff: {name} has no {key!r}.{hint}", name=name, key=key, hint=hint
            ))  # fmt: skip
    try:
        return policy(**values)
    except (TypeError, ValueError) as error:
        raise InvalidTask(_("backoff: {error}", error=why(error))) from None


def backoff_from_text(text: str) -> Backoff:
    """Return the policy of `fixed(5)` or `exponential(base=2, cap=10m)`. Raises `InvalidTask`."""
    match = _POLICY.fullmatch(text)
    if match is None:
        raise InvalidTask(_(
            "backoff: {text!r} is not a policy: write it as exponential(base=2, cap=600).",
            text=text,
        ))  # fmt: skip
    policy = match[1].lower()
    values: dict[str, Any] = {"policy": policy}
    for part in filter(None, map(str.strip, (match[2] or "").split(","))):
        key, equals, number = part.rpartition("=")
        name = key.strip() if equals else "seconds" if policy == "fixed" else "base"
        try:
            values[name] = _number_of(name, number.strip())
        except ValueError as error:
            raise InvalidTask(_("backoff: {error}", error=why(error))) from None
    return backoff_from_json(values)


def _number_of(name: str, text: str) -> float:
    """Return the number that a policy takes by that name. Raises `ValueError`."""
    if name not in NUMBERS:
        return duration_from_text(text).total_seconds()
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            _("{name} must be a number, not {text!r}.", name=name, text=text)
        ) from None


def exception_class(path: object, name: str = "retry_for") -> type[BaseException]:
    """Return the loaded exception class at that path; a bare name is a built-in one.

    Only the project's own `tasks` modules are imported, and no attribute is computed: a value must
    not choose what code runs. Raises `InvalidTask`.
    """
    if isinstance(path, str):
        loaded = _loaded_class(path)
        if loaded is None:
            discover_tasks()
            loaded = _loaded_class(path)
        if loaded is not None:
            return loaded
    raise InvalidTask(_(
        "{name}: {path!r} is not an exception class that is loaded here. Write the full path of "
        "one that the project's tasks import, such as 'shop.errors.Busy', or the name of a "
        "built-in one, such as 'ConnectionError'. Nothing is imported for it.",
        name=name, path=path,
    ))  # fmt: skip


def _loaded_class(path: str) -> type[BaseException] | None:
    parts = path.split(".")
    for place in reversed(range(len(parts))):
        value: object = sys.modules.get(".".join(parts[:place]) or "builtins")
        for part in parts[place:]:
            value = vars(value).get(part) if isinstance(value, type | ModuleType) else None
        if isinstance(value, type) and issubclass(value, BaseException):
            return value
    return None
