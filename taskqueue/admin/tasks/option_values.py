"""The values of options: in JSON, as a task or a schedule stores them, and as fields show them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taskqueue.admin.schedules.fields import SpanWidget, as_text
from taskqueue.declarations.limit_kinds import TagsKind
from taskqueue.declarations.option import Option
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.option_kinds import (
    ExceptionClasses,
    JsonObject,
    Policy,
    UniqueKeyKind,
    WorkerNames,
)
from taskqueue.declarations.per import Per
from taskqueue.declarations.time_kinds import HoldTime, Seconds, When
from taskqueue.exceptions import InvalidTask

LISTS = (ExceptionClasses, WorkerNames, TagsKind)


def shown_option(option: Option, plain: Any) -> Any:
    """Return what the option's field shows. Raises `InvalidTask` if no field can show the value."""
    name, kind = option.name, option.kind
    if plain is None:
        return None
    if isinstance(kind, Seconds):
        return kind.check(name, kind.parse(name, plain))
    if isinstance(kind, JsonObject):
        return as_text(plain)
    if isinstance(kind, LISTS) and isinstance(plain, list):
        return ", ".join(map(str, plain))
    if isinstance(kind, Policy) and isinstance(plain, dict):
        values = dict(plain)
        policy = values.pop("policy", "")
        return f"{policy}({', '.join(f'{key}={value:g}' for key, value in values.items())})"
    is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
    if isinstance(kind, When | HoldTime | Per) and is_number:
        return f"{_number(plain)}s"
    if isinstance(kind, UniqueKeyKind) and not isinstance(plain, str):
        raise InvalidTask(f"{name} is made of arguments, which its field does not show.")
    return plain


def plain_option(option: Option, value: Any) -> Any:
    """Return the JSON value of a field's value; None for nothing. Raises `InvalidTask`."""
    if value is None or value in ("", []):
        return None
    return option_to_json(option.check(value))


def _number(value: float) -> str:
    """Return a number without an exponent."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def parts_of(value: Any) -> list[str]:
    """Return the values of the two fields of a length of time."""
    span = value if isinstance(value, timedelta) or value is None else timedelta(seconds=value)
    return ["" if part is None else str(part) for part in SpanWidget().decompress(span)]
