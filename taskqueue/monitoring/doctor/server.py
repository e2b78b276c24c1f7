"""The PostgreSQL server: version, settings, connections, and how workers reach it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_noop

from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.notify import has_own_session
from taskqueue.engine.statement import fetch
from taskqueue.monitoring.doctor.finding import (
    INFO,
    OK,
    PROBLEM,
    WARNING,
    Check,
    Finding,
    Severity,
    by_limits,
)
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.notices import Situation
from taskqueue.monitoring.read_models.worker import living

SERVER, POOLING = Check("server"), Check("pooling")

LEAST_VERSION = 140_000
CROWDED, FULL = 0.8, 0.95
# The age in transactions since rows were frozen; at two billion the server refuses to write.
OLD, TOO_OLD = 1_000_000_000, 1_800_000_000

SETTINGS = "SELECT name, setting FROM pg_settings WHERE name = ANY (%s::text[])"
STATE = """
SELECT
    current_setting('server_version_num')::int, current_setting('server_version'),
    pg_is_in_recovery(),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::int,
    (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database())
"""


class Demand(NamedTuple):
    """A setting and the values that it must not have."""

    setting: str
    is_wrong: Callable[[str], bool]
    severity: Severity
    because: str
    remedy: str


def _off(value: str) -> bool:
    return value == "off"


DEMANDS = (
    Demand(
        "fsync",
        _off,
        PROBLEM,
        gettext_noop("A crash of the host can corrupt the whole database."),
        gettext_noop("Turn it on."),
    ),
    Demand(
        "full_page_writes",
        _off,
        PROBLEM,
        gettext_noop("A crash of the host can corrupt pages."),
        gettext_noop("Turn it on."),
    ),
    Demand(
        "autovacuum",
        _off,
        PROBLEM,
        gettext_noop("Dead rows are never removed, and claims become slower and slower."),
        gettext_noop("Turn it on."),
    ),
    Demand(
        "track_counts",
        _off,
        PROBLEM,
        gettext_noop("Without it autovacuum does nothing."),
        gettext_noop("Turn it on."),
    ),
    Demand(
        "synchronous_commit",
        _off,
        WARNING,
        gettext_noop(
            "A crash can lose the last moments: tasks that were "
            "enqueued, and results of tasks that "
            "then run again."
        ),
        gettext_noop("Set it to on for this database or role, unless you accept that."),
    ),
    Demand(
        "default_transaction_read_only",
        lambda value: value == "on",
        PROBLEM,
        gettext_noop("Nothing can be enqueued or claimed."),
        gettext_noop("Turn it off for this database and role."),
    ),
    Demand(
        "default_transaction_isolation",
        lambda value: value != "read committed",
        WARNING,
        gettext_noop("Statements that would wait in `read committed` fail and are retried."),
        gettext_noop("Leave it at read committed for this database and role."),
    ),
    Demand(
        "idle_in_transaction_session_timeout",
        lambda value: value == "0",
        INFO,
        gettext_noop("A client that hangs in a transaction holds its snapshot forever."),
        gettext_noop("Set it to a few minutes. Workers set their own."),
    ),
)


def look_at_server(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield problems of the server's settings and state."""
    [(number, version, is_standby, sessions, most, age)] = fetch(connection, STATE)
    old = number < LEAST_VERSION
    yield SERVER.finding(
        PROBLEM if old else OK,
        seen=f"PostgreSQL {version}.",
        remedy=_("taskqueue needs PostgreSQL 14 or newer.") if old else "",
    )
    if is_standby:
        yield SERVER.problem(seen=_("The server is a standby: it accepts no writes."),
            remedy=_("Point TASKQUEUE['DATABASE'] at the primary."),
        )  # fmt: skip
    yield from _connections(sessions, most)
    yield from _freezing(age)
    names = [demand.setting for demand in DEMANDS]
    rows = fetch(connection, SETTINGS, (names,))
    yield from of_settings({str(name): str(value) for name, value in rows})


def of_settings(settings: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what the values of settings cause."""
    for demand in DEMANDS:
        value = settings.get(demand.setting)
        if value is not None and demand.is_wrong(value):
            yield SERVER.finding(
                demand.severity,
                subject=demand.setting,
                seen=_("{setting} is {value}. {because}").format(
                    setting=demand.setting, value=value, because=_(demand.because)
                ),
                remedy=_(demand.remedy),
            )


def _connections(sessions: int, most: int) -> Iterator[Finding]:
    severity = by_limits(sessions / most, warning=CROWDED, problem=FULL)
    if severity is not OK:
        yield SERVER.finding(
            severity,
            subject="max_connections",
            seen=_("{sessions} of {most} connections are in use.").format(
                sessions=sessions, most=most
            ),
            remedy=_(
                "Raise max_connections, or let web processes share a pooler. A worker needs "
                "up to 3 + concurrency."
            ),
        )


def _freezing(age: int) -> Iterator[Finding]:
    severity = by_limits(age, warning=OLD, problem=TOO_OLD)
    if severity is not OK:
        yield SERVER.finding(
            severity,
            seen=_(
                "Rows have not been frozen for {age} transactions: at about 2,000,000,000 "
                "the server stops accepting writes."
            ).format(age=f"{age:,}"),
            remedy=_(
                "End the sessions that hold old snapshots, then VACUUM FREEZE the largest tables."
            ),
        )


SILENCE = 5.0
NAMED = 5
DIRECTLY = gettext_noop(
    "Let workers connect to the server directly: they need few connections, and listen instead of "
    "polling. Or keep the pooler, and choose --poll-interval."
)


def look_at_pooling(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield how this process reaches the server; workers may have other settings."""
    own = open_worker_connection(silence=SILENCE)
    try:
        is_own = has_own_session(own, silence=SILENCE)
    finally:
        own.close()
    if is_own:
        yield POOLING.ok(_("This host has its own session on the server: a worker would listen."))
    else:
        yield POOLING.info(
            seen=_(
                "This host connects through a pooler. A worker would poll, and set no "
                "session settings."
            ),
            remedy=" ".join((_("Web processes can keep using it."), _(DIRECTLY))),
        )


def look_at_listening(
    connection: BaseDatabaseWrapper, situation: Situation | None = None
) -> Iterator[Finding]:
    """Yield how the running workers reach the server, as they have found out themselves."""
    workers = living((Situation() if situation is None else situation).workers)
    polling = [worker.name for worker in workers if worker.listens is False]
    if polling:
        names = ", ".join(polling[:NAMED])
        if len(polling) > NAMED:
            names = _("{names} and {number} more").format(names=names, number=len(polling) - NAMED)
        yield POOLING.info(
            subject=polling[0] if len(polling) == 1 else "",
            seen=_("Workers that poll because they connect through a pooler: {names}.").format(
                names=names
            ),
            remedy=_(DIRECTLY),
        )
    elif listening := sum(worker.listens is True for worker in workers):
        yield POOLING.ok(_("Workers that listen: {number}.").format(number=listening))
