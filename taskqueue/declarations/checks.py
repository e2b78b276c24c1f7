"""System checks of the settings and the database; those of definitions are imported later."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections
from django.utils.module_loading import import_string

from taskqueue import conf

VENDORS = ("postgresql", "sqlite")
# With these, web processes and workers write side by side.
SQLITE_OPTIONS = {
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
}
_are_skipped: ContextVar[bool] = ContextVar(
    "taskqueue_definition_checks_are_skipped", default=False
)


def check_settings(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Check the keys and values of `TASKQUEUE`, the database, and that time zones are on."""
    return list(_wrong_settings())


def _wrong_settings() -> Iterator[CheckMessage]:
    settings, mistakes = conf.parse(getattr(django_settings, "TASKQUEUE", {}))
    for mistake in mistakes:
        yield Error(str(mistake), hint=mistake.hint or None, id="taskqueue.E001")
    if not django_settings.USE_TZ:
        yield Error(
            "taskqueue needs aware datetimes.", hint="Set USE_TZ = True.", id="taskqueue.E002"
        )
    # A class that does not exist would make every request to the API fail with 500. Processes
    # without `rest_framework` serve no API, and may lack modules that the classes need.
    paths = settings.API_AUTHENTICATION if apps.is_installed("rest_framework") else ()
    for path in paths or ():
        if reason := _trouble_with(path):
            yield Error(
                f"TASKQUEUE['API_AUTHENTICATION'] names {path!r}, which {reason}.",
                hint="Name classes such as 'rest_framework.authentication.SessionAuthentication'.",
                id="taskqueue.E006",
            )
    if settings.TRACING and find_spec("opentelemetry") is None:
        yield Error(
            "TASKQUEUE['TRACING'] needs OpenTelemetry, which is not installed.",
            hint="Install it: pip install django-taskqueue[otel].",
            id="taskqueue.E008",
        )
    connection = connections[settings.DATABASE]
    if connection.vendor not in VENDORS:
        yield Error(
            f"taskqueue does not run on {connection.display_name}.",
            hint="Point TASKQUEUE['DATABASE'] at a PostgreSQL or SQLite database.",
            id="taskqueue.E003",
        )


def _trouble_with(path: str) -> str:
    """Return why it is not an authentication class; empty if it is one."""
    try:
        imported = import_string(path)
    except Exception as error:  # A module may raise anything.
        return f"cannot be imported: {type(error).__name__}: {error}"
    is_login = isinstance(imported, type) and hasattr(imported, "authenticate")
    return "" if is_login else "is not an authentication class"


def check_transactions(
    app_configs: Any = None, databases: Collection[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Check that transactions on SQLite wait for the write lock, if that database is checked.

    `migrate`, `check --database`, `runworker` and the doctor check it; other commands do not.
    """
    alias = conf.get_settings().DATABASE
    connection = connections[alias]
    mode = connection.settings_dict.get("OPTIONS", {}).get("transaction_mode")
    if alias not in (databases or ()) or connection.vendor != "sqlite" or mode == "IMMEDIATE":
        return []
    return [
        Warning(
            "On SQLite, a transaction that reads before it writes can fail with "
            "'database is locked' while a worker writes.",
            hint=f"Set DATABASES[{alias!r}]['OPTIONS'] = {SQLITE_OPTIONS}.",
            id="taskqueue.W001",
        )
    ]


@contextmanager
def definitions_unread() -> Iterator[None]:
    """Skip the checks of definitions: they import these, which a worker's parent must not."""
    token = _are_skipped.set(True)
    try:
        yield
    finally:
        _are_skipped.reset(token)


def check_definitions(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Check the declared schedules, limits and pools, and the options of `DEFAULTS`."""
    if _are_skipped.get():
        return []
    # Only now: every process that sets up Django would wait for it.
    from taskqueue.declarations.definition_checks import (
        check_limits,
        check_option_defaults,
        check_pools,
        check_schedules,
    )

    return [*check_schedules(), *check_limits(), *check_option_defaults(), *check_pools()]
