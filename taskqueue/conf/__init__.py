"""The one settings dict `TASKQUEUE`: defaults, validation, access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from os import cpu_count
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from taskqueue.conf.values import (
    DEFAULT_RETENTION,
    DEFAULT_THROTTLE_RATES,
    Mistake,
    checked,
)
from taskqueue.core.suggestions import did_you_mean_option

__all__ = ["DEFAULT_RETENTION", "NAMES", "Mistake", "Settings", "get_settings", "parse"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings, checked. Durations are timedeltas, sizes bytes."""

    DATABASE: str = "default"
    CONCURRENCY: int = field(default_factory=lambda: cpu_count() or 1)
    POOL: str = "process"
    POLL_INTERVAL: timedelta | None = None
    LEASE_DURATION: timedelta = timedelta(seconds=30)
    PING_INTERVAL: timedelta = timedelta(seconds=5)
    TAKEOVER_INTERVAL: timedelta = timedelta(seconds=2)
    SHUTDOWN_TIMEOUT: timedelta = timedelta(seconds=30)
    STOP_GRACE: timedelta = timedelta(seconds=5)
    KILL_GRACE: timedelta = timedelta(seconds=5)
    RETENTION: Mapping[str, timedelta | None] = field(default_factory=lambda: DEFAULT_RETENTION)
    MAX_ATTEMPTS: int = 1
    MAX_CRASHES: int = 3
    CRASH_DELAY: timedelta = timedelta(seconds=10)
    PARK_DELAY: timedelta = timedelta(seconds=10)
    PARK_LIMIT: timedelta = timedelta(days=1)
    MAX_ARGUMENTS: int = 64 * 1024
    MAX_RESULT: int = 1024 * 1024
    LOG_LEVEL: int | str = "INFO"
    MAX_LOG: int = 256 * 1024
    MAX_TRACEBACK: int = 32 * 1024
    CLAIM_AHEAD: int | str = "auto"
    API_AUTHENTICATION: tuple[str, ...] | None = None
    API_THROTTLE_RATES: Mapping[str, str | None] = field(
        default_factory=lambda: DEFAULT_THROTTLE_RATES
    )
    API_LONG_POLLS: int | None = None
    METRICS_TOKEN: str | None = None


NAMES = frozenset(Settings.__dataclass_fields__)


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
    return checked(name, value)


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the project's settings; the system checks report mistakes in them."""
    return parse(getattr(django_settings, "TASKQUEUE", {}))[0]


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in ("TASKQUEUE", "DATABASES"):
        get_settings.cache_clear()


setting_changed.connect(_forget)
