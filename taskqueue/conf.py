"""The one settings dict `TASKQUEUE`: defaults, validation, access.

A check takes the place of a value, as messages name it, and the value; it returns the normal form
or raises `Mistake`.
"""

# ruff: noqa: RUF009  (each call gives a dataclass field)
from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import lru_cache
from os import cpu_count
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from taskqueue.core.alerts import KINDS
from taskqueue.core.retries import seconds_of
from taskqueue.core.suggestions import did_you_mean, did_you_mean_option
from taskqueue.core.webhook_targets import Allowed

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
# How old events may become, and how many are kept.
DEFAULT_EVENTS_KEPT: dict[str, Any] = {"age": timedelta(days=7), "rows": 1_000_000}
# Event streams that are open at once: of one user, and of one process of the web server.
DEFAULT_STREAMS: dict[str, int | None] = {"user": 5, "process": 100}
# Who hears of the default alert rules, what a heartbeat calls, and kinds that are left out.
DEFAULT_ALERTS: dict[str, Any] = {"mail": (), "endpoints": (), "heartbeat": "", "leave_out": ()}
LONGEST_QUEUE_NAME = 100
LONGEST_VERSION = 100
_LARGEST_COUNT = 2**31 - 1
# The largest value of the column for the level of a log line.
_LARGEST_LEVEL = 32767
_RATE = re.compile(r"[1-9][0-9]{0,6}/(s|sec|second|m|min|minute|h|hour|d|day)")
_SITE = re.compile(r"(https?://[!-~]+)?")
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


def kept_events(place: str, value: Any) -> dict[str, Any]:
    """Check how long, and how many, events are kept; None: as long as the other allows."""
    values = table(DEFAULT_EVENTS_KEPT, lambda _, item: item)(place, value)
    checks = {"age": duration(1.0), "rows": whole(1)}
    return {key: optional(checks[key])(f"{place}[{key!r}]", item) for key, item in values.items()}


switch = accepted(lambda value: type(value) is bool, "True or False")


def alerts(place: str, value: Any) -> dict[str, Any]:
    """Check who hears of the default alert rules."""
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


def trace_url(place: str, value: Any) -> str:
    """Check the address of traces, which has a place for the id of one."""
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
    """Check what the built-in tasks may do: nothing by default."""
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


def _setting(check: Check, default: Any = None) -> Any:
    """Declare a setting with its check; a callable makes the default."""
    if callable(default):
        return field(default_factory=default, metadata={"check": check})
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings, checked. Durations are timedeltas, sizes bytes."""

    DATABASE: str = _setting(database, "default")
    CONCURRENCY: int = _setting(whole(1), lambda: cpu_count() or 1)
    POOL: str = _setting(
        accepted(lambda value: value in ("process", "thread"), "'process' or 'thread'"), "process"
    )
    POLL_INTERVAL: timedelta | None = _setting(optional(duration(0.01)))
    LEASE_DURATION: timedelta = _setting(duration(1.0), timedelta(seconds=30))
    PING_INTERVAL: timedelta = _setting(duration(0.05), timedelta(seconds=5))
    TAKEOVER_INTERVAL: timedelta = _setting(duration(0.1), timedelta(seconds=2))
    SHUTDOWN_TIMEOUT: timedelta = _setting(duration(0.0), timedelta(seconds=30))
    STOP_GRACE: timedelta = _setting(duration(0.0), timedelta(seconds=5))
    KILL_GRACE: timedelta = _setting(duration(0.0), timedelta(seconds=5))
    RETENTION: Mapping[str, timedelta | None] = _setting(
        table(DEFAULT_RETENTION, duration(0.0)), lambda: DEFAULT_RETENTION
    )
    DEFAULTS: Mapping[str, Mapping[str, Any]] = _setting(option_defaults, dict)
    MAX_ATTEMPTS: int = _setting(whole(1), 1)
    MAX_CRASHES: int = _setting(whole(1), 3)
    CRASH_DELAY: timedelta = _setting(duration(0.0), timedelta(seconds=10))
    PARK_DELAY: timedelta = _setting(duration(0.1), timedelta(seconds=10))
    PARK_LIMIT: timedelta = _setting(duration(1.0), timedelta(days=1))
    CHECK_ARGUMENTS: bool = _setting(switch, True)
    MAX_ARGUMENTS: int = _setting(whole(2), 64 * 1024)
    MAX_RESULT: int = _setting(whole(2), 1024 * 1024)
    MAX_CHECKPOINT: int = _setting(whole(2), 64 * 1024)
    LOG_LEVEL: int | str = _setting(log_level, "INFO")
    MAX_LOG: int = _setting(whole(0), 256 * 1024)
    MAX_TRACEBACK: int = _setting(whole(256), 32 * 1024)
    CLAIM_AHEAD: int | str = _setting(
        accepted(
            lambda value: value == "auto" or (type(value) is int and 0 <= value <= 10_000),
            "'auto' or a whole number between 0 and 10000",
        ),
        "auto",
    )
    API_AUTHENTICATION: tuple[str, ...] | None = _setting(
        optional(
            accepted(
                are_paths,
                "a list of the paths of authentication classes, or None for the project's own",
                normal=tuple,
            )
        )
    )
    API_THROTTLE_RATES: Mapping[str, str | None] = _setting(
        table(
            DEFAULT_THROTTLE_RATES, accepted(is_rate, "such as '600/minute', or None for no limit")
        ),
        lambda: DEFAULT_THROTTLE_RATES,
    )
    API_LONG_POLLS: int | None = _setting(
        accepted(
            lambda value: value is None or (type(value) is int and value >= 0),
            "a whole number of 0 or more, or None for as many as suit the web server",
        )
    )
    VERSION: str = _setting(
        accepted(
            lambda value: isinstance(value, str) and len(value) <= LONGEST_VERSION,
            f"the version of the project, of up to {LONGEST_VERSION} characters, or empty",
        ),
        "",
    )
    METRICS_TOKEN: str | None = _setting(optional(token))
    TRACING: bool = _setting(switch, False)
    TRACE_URL: str | None = _setting(optional(trace_url))
    EVENTS_KEPT: Mapping[str, Any] = _setting(kept_events, lambda: DEFAULT_EVENTS_KEPT)
    INTERNAL_QUEUE: str = _setting(
        accepted(
            lambda value: isinstance(value, str) and 0 < len(value) <= LONGEST_QUEUE_NAME,
            f"the name of a queue, of up to {LONGEST_QUEUE_NAME} characters",
        ),
        "default",
    )
    ALERTS: Mapping[str, Any] | None = _setting(optional(alerts))
    STREAMS: Mapping[str, int | None] = _setting(
        table(DEFAULT_STREAMS, whole(0)), lambda: DEFAULT_STREAMS
    )
    WEBHOOK_ALLOW: tuple[str, ...] = _setting(allowed_targets, ())
    BUILTIN_TASKS: Mapping[str, tuple[Any, ...]] = _setting(
        builtin_tasks, lambda: dict.fromkeys(BUILTIN_TASKS, ())
    )
    SITE_URL: str = _setting(
        accepted(
            lambda value: isinstance(value, str) and _SITE.fullmatch(value) is not None,
            "the address of the site, such as 'https://shop.example.org', or empty",
            normal=lambda value: value.rstrip("/"),
        ),
        "",
    )


_CHECKS: dict[str, Check] = {
    setting.name: setting.metadata["check"] for setting in fields(Settings)
}
NAMES = frozenset(_CHECKS)


def parse(raw: Any) -> tuple[Settings, list[Mistake]]:
    """Return the settings in `raw`, with defaults in place of wrong values, and the mistakes."""
    if not isinstance(raw, Mapping):
        return Settings(), [Mistake(f"TASKQUEUE must be a dict, not {type(raw).__name__}.")]
    values: dict[str, Any] = {}
    mistakes: list[Mistake] = []
    for name, value in raw.items():
        try:
            values[name] = _known(name, value)
        except Mistake as mistake:
            mistakes.append(mistake)
    settings = Settings(**values)
    if settings.PING_INTERVAL * 3 > settings.LEASE_DURATION:
        mistakes.append(
            Mistake(
                "TASKQUEUE['PING_INTERVAL'] must be at most a third of "
                "TASKQUEUE['LEASE_DURATION'], or one late ping loses the lease.",
                "Lengthen LEASE_DURATION or shorten PING_INTERVAL.",
            )
        )
    return settings, mistakes


def _known(name: Any, value: Any) -> Any:
    if name not in NAMES:
        keys = f"The keys are {', '.join(sorted(NAMES))}."
        hint = did_you_mean_option(name, NAMES, otherwise=keys)
        raise Mistake(f"TASKQUEUE has no key {name!r}.", hint.strip())
    return _CHECKS[name](f"TASKQUEUE[{name!r}]", value)


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the project's settings; the system checks report mistakes in them."""
    return parse(getattr(django_settings, "TASKQUEUE", {}))[0]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in ("TASKQUEUE", "DATABASES"):
        get_settings.cache_clear()


setting_changed.connect(_forget)
