"""System checks: mistakes that are better found before the first task."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections
from django.utils.module_loading import import_string

from taskqueue import conf

VENDORS = ("postgresql", "sqlite")
SQLITE_OPTIONS = {
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
}
"""With these, web processes and workers write side by side."""


def check_settings(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """`TASKQUEUE` holds only known keys with possible values, and time zones are on."""
    settings, mistakes = conf.parse(getattr(django_settings, "TASKQUEUE", {}))
    messages: list[CheckMessage] = [
        Error(str(mistake), hint=mistake.hint or None, id="taskqueue.E001") for mistake in mistakes
    ]
    if not django_settings.USE_TZ:
        messages.append(
            Error(
                "taskqueue needs aware datetimes.",
                hint="Set USE_TZ = True.",
                id="taskqueue.E002",
            )
        )
    return [*messages, *_check_logins(settings), *_check_database(settings.DATABASE)]


def _check_logins(settings: conf.Settings) -> list[CheckMessage]:
    """That the classes are there: else every request to the API would end in a 500.

    Processes that lack `rest_framework` answer none, and may lack what the classes need too.
    """
    if not apps.is_installed("rest_framework"):
        return []
    reasons = {path: _trouble_with(path) for path in settings.API_AUTHENTICATION or ()}
    return [
        Error(
            f"TASKQUEUE['API_AUTHENTICATION'] names {path!r}, which {reason}.",
            hint="Name classes such as 'rest_framework.authentication.SessionAuthentication'.",
            id="taskqueue.E006",
        )
        for path, reason in reasons.items()
        if reason
    ]


def _trouble_with(path: str) -> str:
    """Why it cannot say who a request is from; empty if it can."""
    try:
        found = import_string(path)
    except Exception as error:  # A module may raise anything.
        return f"cannot be imported: {type(error).__name__}: {error}"
    is_login = isinstance(found, type) and hasattr(found, "authenticate")
    return "" if is_login else "is no authentication class"


def _check_database(alias: str) -> list[CheckMessage]:
    connection = connections[alias]
    if connection.vendor not in VENDORS:
        return [
            Error(
                f"taskqueue does not run on {connection.display_name}.",
                hint="Point TASKQUEUE['DATABASE'] at a PostgreSQL or SQLite database.",
                id="taskqueue.E003",
            )
        ]
    return []


def check_transactions(
    app_configs: Any = None, databases: Collection[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """On SQLite, transactions queue up for the write lock, where that database is checked.

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
