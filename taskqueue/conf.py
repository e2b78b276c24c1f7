"""The one settings dict `TASKQUEUE`: defaults, validation, access."""

# ruff: noqa: RUF009  (each call gives a dataclass field)
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import lru_cache
from os import cpu_count
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from taskqueue.core.setting_checks import (
    BUILTIN_TASKS,
    DEFAULT_EVENTS_KEPT,
    Check,
    Mistake,
    accepted,
    alerts,
    allowed_targets,
    are_paths,
    builtin_tasks,
    duration,
    is_rate,
    kept_events,
    log_level,
    option_defaults,
    optional,
    switch,
    table,
    token,
    trace_url,
    whole,
)
from taskqueue.core.suggestions import did_you_mean, did_you_mean_option

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
# Event streams that are open at once: of one user, and of one process of the web server.
DEFAULT_STREAMS: dict[str, int | None] = {"user": 5, "process": 100}
LONGEST_QUEUE_NAME = 100
LONGEST_VERSION = 100
_PATH = re.compile(r"(?:[^\W\d]\w*(?:\.[^\W\d]\w*)+)?")
_SITE = re.compile(r"(https?://[!-~]+)?")


def database(place: str, value: Any) -> str:
    """Check that the alias is one of the project's."""
    if value in list(django_settings.DATABASES):
        return str(value)
    raise Mistake(
        f"{place} names {value!r}, which is not in DATABASES.",
        did_you_mean(value, django_settings.DATABASES).strip(),
    )


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
    PARK_LIMIT: timedelta = _setting(duration(0.0), timedelta(days=1))
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
    FORMATTER: str = _setting(
        accepted(
            lambda value: isinstance(value, str) and _PATH.fullmatch(value) is not None,
            "the path of a function, such as 'shop.formats.shown', or empty",
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
