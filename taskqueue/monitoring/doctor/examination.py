"""The examination: checks that run one after another, even if others fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import project_connection
from taskqueue.engine.statement import fetch
from taskqueue.monitoring.doctor.alerts import look_at_alerts
from taskqueue.monitoring.doctor.bloat import look_at_indexes, look_at_tables
from taskqueue.monitoring.doctor.configuration import (
    look_at_clocks,
    look_at_migrations,
    look_at_settings,
)
from taskqueue.monitoring.doctor.dead_rows import look_at_snapshots
from taskqueue.monitoring.doctor.events import look_at_events
from taskqueue.monitoring.doctor.examinations import look_at_examinations
from taskqueue.monitoring.doctor.finding import INFO, PROBLEM, WARNING, Check, Finding
from taskqueue.monitoring.doctor.limits import look_at_limits
from taskqueue.monitoring.doctor.server import look_at_listening, look_at_pooling, look_at_server
from taskqueue.monitoring.doctor.sqlite_file import look_at_sqlite
from taskqueue.monitoring.doctor.webhooks import look_at_webhooks
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.work import examined_situation, look_at_work
from taskqueue.monitoring.doctor.workflows import look_at_workflows
from taskqueue.monitoring.reading import NoAnswer, Question, is_postgresql, time_limit

Look = Callable[[BaseDatabaseWrapper], Iterator[Finding]]
TROUBLE = (DatabaseError, InterfaceError)
# The time limit of each statement, so that the doctor does no harm itself.
PATIENCE = "10s"
# Seconds for the server to accept a connection and give its first answer.
LONGEST_SILENCE = 5.0

# Checks that need no table.
OF_SERVER: dict[str, Look] = {
    "server": look_at_server,
    "pooling": look_at_pooling,
    "clocks": look_at_clocks,
    "snapshots": look_at_snapshots,
}
OF_WORK: dict[str, Look] = {
    "workflows": look_at_workflows,
    "webhooks": look_at_webhooks,
    "events": look_at_events,
    "examinations": look_at_examinations,
}
OF_TABLES: dict[str, Look] = {"tables": look_at_tables, "indexes": look_at_indexes}


def examine(*, patience: str = PATIENCE) -> list[Finding]:
    """Return all findings, in the order of the checks; write nothing.

    If a statement takes longer than `patience`, it is cancelled, and its check reports that.
    """
    connection = project_connection()
    found = list(look_at_settings(connection))
    try:
        _ask_once(connection)
        connection.ensure_connection()
    except (*TROUBLE, OSError, NoAnswer) as error:
        return [*found, _unreachable(error)]
    looks = {"migrations": look_at_migrations}
    looks |= OF_SERVER if is_postgresql() else {"sqlite": look_at_sqlite}
    found += _asked_all(connection, looks, patience)
    if not any(each.check == "migrations" and each.severity is PROBLEM for each in found):
        # Read once for all checks of workers and queues.
        seen = examined_situation()
        looks = {
            **(OF_TABLES if is_postgresql() else {}),
            **(
                {"listening": partial(look_at_listening, situation=seen)} if is_postgresql() else {}
            ),
            "work": partial(look_at_work, situation=seen),
            "limits": partial(look_at_limits, situation=seen),
            **OF_WORK,
            "alerts": partial(look_at_alerts, situation=seen),
        }
        found += _asked_all(connection, looks, patience)
    return found


def _asked_all(
    connection: BaseDatabaseWrapper, looks: Mapping[str, Look], patience: str
) -> list[Finding]:
    """Return the findings of checks, made in one transaction as long as none of them fails.

    A transaction for each would send twice as many statements, and workers examine regularly.
    """
    found: list[Finding] = []
    left = list(looks.items())
    with suppress(*TROUBLE), time_limit(connection, patience):
        while left:
            found += list(left[0][1](connection))
            del left[0]
    for name, look in left:
        found += _asked(connection, name, look, patience)
    return found


def _ask_once(connection: BaseDatabaseWrapper) -> None:
    """Check first that another connection succeeds: nothing limits a connect to a silent server.

    SQLite's file is never silent, and a caller in a transaction has already reached the server.
    """
    if is_postgresql() and not connection.in_atomic_block:
        Question(lambda: fetch(project_connection(), "SELECT 1"), seconds=LONGEST_SILENCE).answer()


def _asked(connection: BaseDatabaseWrapper, name: str, look: Look, patience: str) -> list[Finding]:
    """Return the findings of a check; a lack of permission or an error is a finding too."""
    try:
        with time_limit(connection, patience):
            return list(look(connection))
    except TROUBLE as error:
        said = _said(error)
        is_denied = getattr(error.__cause__, "sqlstate", "") == "42501"
        return [
            Finding(
                check=name,
                severity=INFO if is_denied else WARNING,
                seen=_("This check could not run: {said}").format(said=said),
                remedy=_("Run the doctor as a role with GRANT pg_monitor.")
                if is_denied
                else _("Fix what the database reports, and run the doctor again."),
            )
        ]


def _unreachable(error: Exception) -> Finding:
    return Check("database").problem(
        seen=_("The database cannot be reached: {said}").format(said=_said(error)),
        remedy=_(
            "Check that it is running, and its host, user, password and options in DATABASES."
        ),
    )


def _said(error: Exception) -> str:
    return " ".join(str(error).split("\n", 1)[0].split()) or type(error).__name__
