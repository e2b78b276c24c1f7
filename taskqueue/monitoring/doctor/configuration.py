"""The project's settings, its migrations, and the clock of this host."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.conf import settings as django_settings
from django.core.checks import ERROR, CheckMessage
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from taskqueue.conf import get_settings
from taskqueue.declarations.checks import (
    check_definitions,
    check_settings,
    check_transactions,
)
from taskqueue.monitoring.doctor.finding import OK, PROBLEM, WARNING, Check, Finding, by_limits
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.words import short_duration
from taskqueue.monitoring.reading import is_postgresql, now

SETTINGS, MIGRATIONS, CLOCKS = Check("settings"), Check("migrations"), Check("clocks")


def look_at_settings(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield problems of the settings, without database queries."""
    databases = [get_settings().DATABASE]
    messages = [
        *check_settings(),
        *check_transactions(databases=databases),
        *check_definitions(),
    ]
    found = [*map(_of_message, messages), *_debug(), *_connections(connection), *_retention()]
    yield from found or [SETTINGS.ok(_("The settings have no problems."))]


def _of_message(message: CheckMessage) -> Finding:
    return SETTINGS.finding(
        PROBLEM if message.level >= ERROR else WARNING,
        subject=str(message.id),
        seen=str(message.msg),
        remedy=str(message.hint or ""),
    )


def _debug() -> Iterator[Finding]:
    if django_settings.DEBUG:
        yield SETTINGS.warning(
            subject="DEBUG",
            seen=_(
                "DEBUG is on: error pages reveal secrets, each process keeps its last "
                "thousands of queries in memory, and workers reload changed code."
            ),
            remedy=_("Set DEBUG = False in production."),
        )


def _connections(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    values: dict[str, Any] = connection.settings_dict
    has_pool = bool(values.get("OPTIONS", {}).get("pool"))
    age = values.get("CONN_MAX_AGE")
    if not is_postgresql() or has_pool:
        return
    if age == 0:
        yield SETTINGS.info(
            subject="CONN_MAX_AGE",
            seen=_(
                "CONN_MAX_AGE is 0: each web request that enqueues opens a connection of its "
                "own. Workers keep theirs."
            ),
            remedy=_(
                "Set DATABASES[{alias}]['CONN_MAX_AGE'] = 60 and CONN_HEALTH_CHECKS = True, "
                "or OPTIONS['pool']."
            ).format(alias=f"{connection.alias!r}"),
        )
    elif not values.get("CONN_HEALTH_CHECKS"):
        yield SETTINGS.info(
            subject="CONN_HEALTH_CHECKS",
            seen=_(
                "Connections are kept open without health checks: the first request after a "
                "restart of the server fails."
            ),
            remedy=_("Set DATABASES[{alias}]['CONN_HEALTH_CHECKS'] = True.").format(
                alias=f"{connection.alias!r}"
            ),
        )


def _retention() -> Iterator[Finding]:
    endless = [status for status, kept in get_settings().RETENTION.items() if kept is None]
    if endless:
        yield SETTINGS.info(
            subject="RETENTION",
            seen=_(
                "Tasks of these statuses are kept forever, so that the tables only grow: {names}."
            ).format(names=", ".join(endless)),
            remedy=_("Set a limit in TASKQUEUE['RETENTION'], unless this is intended."),
        )


def look_at_migrations(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield migrations of taskqueue that are not applied."""
    executor = MigrationExecutor(connection)
    leaves = [node for node in executor.loader.graph.leaf_nodes() if node[0] == "taskqueue"]
    missing = [str(migration) for migration, _ in executor.migration_plan(leaves)]
    if missing:
        yield MIGRATIONS.problem(
            seen=_("Migrations are not applied: {names}. Workers refuse to start.").format(
                names=", ".join(missing)
            ),
            remedy=f"manage.py migrate --database {connection.alias}",
        )
    else:
        yield MIGRATIONS.ok(_("All migrations are applied."))


# Seconds.
SOME, MUCH = 1.0, 60.0


def look_at_clocks(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield the least difference of the clocks: the time for the answer is subtracted."""
    asked, began = datetime.now(UTC), time.monotonic()
    theirs = now()
    took = time.monotonic() - began
    ahead = (theirs - asked).total_seconds()
    yield of_difference(max(0.0, -ahead, ahead - took), is_behind=ahead > 0)


def of_difference(seconds: float, *, is_behind: bool) -> Finding:
    """Return the finding for a difference; `is_behind`: this process's clock is behind."""
    severity = by_limits(seconds, warning=SOME, problem=MUCH)
    if severity is OK:
        return CLOCKS.ok(_("This host's clock agrees with the database's."))
    template = (
        _("This host's clock is {age} behind the database's.")
        if is_behind
        else _("This host's clock is {age} ahead of the database's.")
    )
    return CLOCKS.finding(
        severity,
        seen=template.format(age=short_duration(seconds)),
        remedy=_("Synchronize both hosts by NTP. Tasks are due by the database's clock."),
    )
