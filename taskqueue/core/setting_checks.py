"""Checks of settings: each takes the name of a value for messages, and the value.

It returns the normal form or raises `Mistake`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from taskqueue.core.alerts import KINDS
from taskqueue.core.retries import seconds_of
from taskqueue.core.suggestions import did_you_mean
from taskqueue.core.webhook_targets import Allowed

Check = Callable[[str, Any], Any]

# The age of old events, and the number that is kept.
DEFAULT_EVENTS_KEPT: dict[str, Any] = {"age": timedelta(days=7), "rows": 1_000_000}
# The recipients of the default alert rules, the URL of a heartbeat, and kinds that are left out.
DEFAULT_ALERTS: dict[str, Any] = {"mail": (), "endpoints": (), "heartbeat": "", "leave_out": ()}
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
    """Return the check of a duration of at least `lowest` seconds."""

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


def kept_events(place: str, value: Any) -> dict[str, Any]:
    """Check how long and how many events are kept; with None only the other one limits."""
    values = table(DEFAULT_EVENTS_KEPT, lambda _, item: item)(place, value)
    checks = {"age": duration(1.0), "rows": whole(1)}
    return {key: optional(checks[key])(f"{place}[{key!r}]", item) for key, item in values.items()}


switch = accepted(lambda value: type(value) is bool, "True or False")


def alerts(place: str, value: Any) -> dict[str, Any]:
    """Check the recipients of the default alert rules."""
    if not isinstance(value, Mapping):
        raise Mistake(f"{place} must be a dict or None, not {value!r}.")
    values = dict(DEFAULT_ALERTS)
    for key, item in value.items():
        if key not in values:
            raise Mistake(f"{place} has no key {key!r}.", f"The keys are {', '.join(values)}.")
        if key == "heartbeat":
            if not isinstance(item, str):
                raise Mistake(f"{place}[{key!r}] must be a URL, not {item!r}.")
            values[key] = item
        elif isinstance(item, list | tuple) and all(isinstance(each, str) for each in item):
            values[key] = tuple(item)
        else:
            raise Mistake(f"{place}[{key!r}] must be a list of texts, not {item!r}.")
    known = {kind.value for kind, details in KINDS.items() if details.is_default}
    for kind in values["leave_out"]:
        if kind not in known:
            hint = did_you_mean(kind, known, otherwise=f"They are {', '.join(sorted(known))}.")
            raise Mistake(f"{place}['leave_out'] names {kind!r}, which is no default rule.", hint)
    return values


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


def trace_url(place: str, value: Any) -> str:
    """Check the address of traces, which has a placeholder for the trace id."""
    is_address = isinstance(value, str) and value.startswith(("https://", "http://"))
    if is_address and value.count("{trace_id}") == 1:
        return str(value)
    raise Mistake(
        f"{place} must be an address such as 'https://tempo.example/trace/{{trace_id}}', "
        f"not {value!r}."
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


def option_defaults(place: str, value: Any) -> dict[str, dict[str, Any]]:
    """Check that it holds options by patterns of names; another check looks at the options."""
    if not isinstance(value, Mapping):
        raise Mistake(f"{place} must be a dict, not {value!r}.")
    for pattern, options in value.items():
        if not isinstance(pattern, str) or not isinstance(options, Mapping):
            raise Mistake(
                f"{place} must hold dicts of options by patterns of names, not "
                f"{pattern!r}: {options!r}.",
                "Such as {'shop.reports.*': {'queue_name': 'reports', 'timeout': 1800}}.",
            )
    return {pattern: dict(options) for pattern, options in value.items()}


BUILTIN_TASKS = ("command", "http", "program")
# A pattern of URLs names its host in full.
_URL_PATTERN = re.compile(r"https?://[^*?\[\]/@\s]+/\S*")


def builtin_tasks(place: str, value: Any) -> dict[str, tuple[Any, ...]]:
    """Check what the built-in tasks may do, which is nothing by default."""
    if not isinstance(value, Mapping):
        raise Mistake(f"{place} must be a dict, not {value!r}.")
    allowed: dict[str, tuple[Any, ...]] = dict.fromkeys(BUILTIN_TASKS, ())
    for key, entries in value.items():
        if key not in allowed:
            raise Mistake(f"{place} has no key {key!r}.", f"The keys are {', '.join(allowed)}.")
        if not isinstance(entries, list | tuple):
            raise Mistake(f"{place}[{key!r}] must be a list, not {entries!r}.")
        own = f"{place}[{key!r}]"
        if key == "http":
            allowed[key] = tuple(_url_pattern(own, each) for each in entries)
        else:
            allowed[key] = tuple(_call_pattern(own, each) for each in entries)
    return allowed


def _url_pattern(place: str, value: Any) -> str:
    if isinstance(value, str) and _URL_PATTERN.fullmatch(value):
        return value
    raise Mistake(
        f"{place} holds {value!r}, which is no pattern of URLs with a host in full.",
        "Write such as 'https://api.example.org/jobs/*'.",
    )


def _call_pattern(place: str, value: Any) -> tuple[str, ...]:
    words = (value,) if isinstance(value, str) else value
    are_words = isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
    if not are_words or not words or not words[0] or set(words[0]) & set("*?["):
        raise Mistake(
            f"{place} holds {value!r}, which is no list of words that begins with a name.",
            "Write such as ['clearsessions'], or ['import_rows', '--file=*.csv', '**'], where "
            "'**' stands for any further words.",
        )
    return tuple(words)


def allowed_targets(place: str, value: Any) -> tuple[str, ...]:
    """Check hosts and networks to which webhooks may be sent though they are not public."""
    if value == () or value == []:
        return ()
    if not are_paths(value):
        raise Mistake(f"{place} must be a list of texts, not {value!r}.")
    try:
        Allowed.of(value)
    except ValueError as error:
        raise Mistake(
            f"{place} holds {str(error)!r}, which is neither a host nor a network.",
            "Write hosts such as 'hooks.internal' or '*.internal:8080', and networks such as "
            "'10.1.0.0/16'.",
        ) from None
    return tuple(value)
