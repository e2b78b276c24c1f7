"""The project's settings: what the system checks say, and what they leave to the doctor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings as django_settings
from django.core.checks import ERROR, CheckMessage
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.declarations.checks import check_settings, check_transactions
from taskqueue.declarations.declared_schedules import check_schedules
from taskqueue.monitoring.doctor.finding import INFO, OK, PROBLEM, WARNING, Finding

CHECK = "settings"


def look_at_settings(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """All that is odd about them; touches no database."""
    databases = [get_settings().DATABASE]
    messages = [
        *check_settings(), *check_transactions(databases=databases), *check_schedules(),
    ]  # fmt: skip
    found = [
        *map(_of_message, messages),
        *_debug(),
        *_connections(connection),
        *_retention(),
    ]
    yield from found
    if not found:
        yield Finding(check=CHECK, severity=OK, seen="Nothing is odd about the settings.")


def _of_message(message: CheckMessage) -> Finding:
    return Finding(
        check=CHECK,
        severity=PROBLEM if message.level >= ERROR else WARNING,
        subject=str(message.id),
        seen=str(message.msg),
        remedy=str(message.hint or ""),
    )


def _debug() -> Iterator[Finding]:
    if django_settings.DEBUG:
        yield Finding(
            check=CHECK,
            severity=WARNING,
            subject="DEBUG",
            seen="DEBUG is on: pages of errors tell secrets, each process remembers its last "
            "thousands of queries, and workers reload code that changes.",
            remedy="Set DEBUG = False in production.",
        )


def _connections(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    values: dict[str, Any] = connection.settings_dict
    has_pool = bool(values.get("OPTIONS", {}).get("pool"))
    age = values.get("CONN_MAX_AGE")
    if connection.vendor != "postgresql" or has_pool:
        return
    if age == 0:
        yield Finding(
            check=CHECK,
            severity=INFO,
            subject="CONN_MAX_AGE",
            seen="CONN_MAX_AGE is 0: each web request that enqueues opens a connection of its own. "
            "Workers keep theirs.",
            remedy=f"Set DATABASES[{connection.alias!r}]['CONN_MAX_AGE'] = 60 and "
            "CONN_HEALTH_CHECKS = True, or OPTIONS['pool'].",
        )
    elif not values.get("CONN_HEALTH_CHECKS"):
        yield Finding(
            check=CHECK,
            severity=INFO,
            subject="CONN_HEALTH_CHECKS",
            seen="Connections are kept and not checked: the first request after a restart of the "
            "server fails.",
            remedy=f"Set DATABASES[{connection.alias!r}]['CONN_HEALTH_CHECKS'] = True.",
        )


def _retention() -> Iterator[Finding]:
    endless = [status for status, kept in get_settings().RETENTION.items() if kept is None]
    if endless:
        yield Finding(
            check=CHECK,
            severity=INFO,
            subject="RETENTION",
            seen=f"Tasks are kept for ever that have {' or '.join(endless)}: the tables only grow.",
            remedy="Give TASKQUEUE['RETENTION'] a limit, unless that is meant.",
        )
