"""Rules from plain JSON values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from taskqueue.exceptions import InvalidSchedule
from taskqueue.rules.base import Rule
from taskqueue.rules.cron import Cron
from taskqueue.rules.daily_window import DailyWindow
from taskqueue.rules.intervals import AfterEnd, Every, Once
from taskqueue.rules.values import shown, suggestion

Reader = Callable[[str, Any], Any]


def from_json(stored: Mapping[str, Any]) -> Rule:
    """Return the rule that `as_json` has written.

    Raises InvalidSchedule for a kind that is unknown, for keys that are unknown or missing, and
    for values of a wrong type; `check()` raises for other mistakes.
    """
    if not isinstance(stored, Mapping):
        raise InvalidSchedule(f"A stored rule must be a JSON object, not {shown(stored)}.")
    kind = stored.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = suggestion(kind, KINDS) or f" The kinds are {', '.join(KINDS)}."
        raise InvalidSchedule(f"There is no kind of rule {shown(kind)}.{hint}")
    required, optional = _KEYS[kind]
    values = {name: value for name, value in stored.items() if name != "kind"}
    for name in values:
        if name not in required | optional:
            hint = suggestion(name, required | optional)
            raise InvalidSchedule(f"A rule of the kind {kind!r} has no {shown(name)}.{hint}")
    if missing := sorted(required.keys() - values.keys()):
        raise InvalidSchedule(f"A rule of the kind {kind!r} needs {', '.join(missing)}.")
    readers = required | optional
    return KINDS[kind](**{name: readers[name](name, value) for name, value in values.items()})


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidSchedule(f"{name} must be text, not {shown(value)}.")
    return value


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSchedule(f"{name} must be a number of seconds, not {shown(value)}.")
    return value


def _moment(name: str, value: Any) -> datetime:
    try:
        return datetime.fromisoformat(_text(name, value))
    except ValueError as error:
        if isinstance(error, InvalidSchedule):
            raise
        raise InvalidSchedule(
            f"{name} must be a datetime, such as '2026-12-01T09:00:00+00:00', not {shown(value)}."
        ) from None


def _limit(name: str, value: Any) -> datetime | None:
    return None if value is None else _moment(name, value)


def _days(name: str, value: Any) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(day, str) for day in value):
        return value
    raise InvalidSchedule(f"{name} must be names of days, not {shown(value)}.")


_LIMITS: dict[str, Reader] = {"start": _limit, "end": _limit}
# By kind: the keys that must be there, and those that may; each with what reads its value.
_KEYS: dict[str, tuple[dict[str, Reader], dict[str, Reader]]] = {
    Cron.kind: ({"expression": _text}, {"tz": _text} | _LIMITS),
    Every.kind: ({"interval": _seconds}, _LIMITS),
    AfterEnd.kind: ({"interval": _seconds}, _LIMITS),
    DailyWindow.kind: (
        {"first": _text, "last": _text, "every": _seconds},
        {"days": _days, "tz": _text} | _LIMITS,
    ),
    Once.kind: ({"at": _moment}, {}),
}
KINDS: dict[str, Callable[..., Rule]] = {
    kind.kind: kind for kind in (Cron, Every, AfterEnd, DailyWindow, Once)
}
