"""Sessions with an old snapshot, which keeps dead rows from being removed.

Such a snapshot belongs to a session in a transaction, a prepared transaction, or a replication
slot.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch
from taskqueue.monitoring.doctor.finding import (
    INFO,
    OK,
    WARNING,
    Check,
    Finding,
    Severity,
    by_limits,
    megabytes,
)
from taskqueue.monitoring.doctor.words import gettext as _
from taskqueue.monitoring.doctor.words import short_duration

CHECK = Check("snapshots")
# Seconds.
LONG, TOO_LONG = 300.0, 3600.0
# Transactions since then.
MANY, TOO_MANY = 1_000_000, 50_000_000
MUCH_LOG = 1024**3
MOST = 5

# Sessions of other databases do not keep our rows, and neither do those of a vacuum.
SESSIONS = """
SELECT
    pid, COALESCE(usename, ''), COALESCE(application_name, ''),
    COALESCE(host(client_addr), 'here'), COALESCE(state, ''),
    COALESCE(EXTRACT(epoch FROM clock_timestamp() - xact_start), 0)::float8,
    GREATEST(age(backend_xmin), age(backend_xid))
FROM pg_stat_activity
WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    AND pid <> pg_backend_pid()
    AND (datname = current_database() OR datname IS NULL)
    AND backend_type NOT IN ('autovacuum launcher', 'autovacuum worker')
ORDER BY xact_start NULLS LAST, pid
LIMIT %s
"""
RIGHTS = """
SELECT current_user::text, pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'), (
    SELECT count(*)
    FROM pg_stat_activity
    WHERE datname = current_database() AND NOT pg_has_role(current_user, usesysid, 'USAGE')
)
"""
PREPARED = """
SELECT
    gid, owner::text, EXTRACT(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)
FROM pg_prepared_xacts
WHERE database = current_database()
ORDER BY prepared
LIMIT %s
"""
SLOTS = """
SELECT
    slot_name::text, active, COALESCE(age(xmin), 0),
    COALESCE(
        CASE WHEN pg_is_in_recovery() THEN 0
        ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END, 0
    )::bigint
FROM pg_replication_slots
ORDER BY slot_name
"""


def look_at_snapshots(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield the oldest session, however young, and other old ones."""
    yield from _rights(connection)
    yield from _sessions(connection)
    yield from _prepared(connection)
    yield from _slots(connection)


def _rights(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    [(user, may_see, hidden)] = fetch(connection, RIGHTS)
    if hidden and not may_see:
        yield CHECK.info(
            subject=user,
            seen=_(
                "The role {user} may not view {hidden} sessions of other roles: an old "
                "snapshot of theirs would go unnoticed."
            ).format(user=user, hidden=hidden),
            remedy=_(
                'GRANT pg_read_all_stats TO "{user}", or run the doctor as another role.'
            ).format(user=user),
        )


def _sessions(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    rows = fetch(connection, SESSIONS, (MOST,))
    if not rows:
        yield CHECK.ok(_("No other session holds a snapshot."))
    for number, row in enumerate(rows):
        pid, user, application, address, state, seconds, transactions = row
        severity = _severity(seconds, transactions)
        if number and severity is OK:
            continue
        template = (
            _(
                "An old snapshot is held by session {session} of {user} from "
                "{address}, {state}, for {age} and {transactions} transactions."
            )
            if number
            else _(
                "The oldest snapshot is held by session {session} of {user} "
                "from {address}, {state}, for {age} and {transactions} transactions."
            )
        )
        name = f" ({application})" if application else ""
        yield CHECK.finding(
            severity,
            subject=str(pid),
            seen=template.format(
                session=f"{pid}{name}",
                user=user or _("the server"),
                address=address,
                state=state or _("busy"),
                age=short_duration(seconds),
                transactions=f"{transactions:,}",
            ),
            remedy=""
            if severity is OK
            else _(
                "Check what it does, and end it if possible: SELECT "
                "pg_terminate_backend({pid}). Prevent the next one by "
                "idle_in_transaction_session_timeout."
            ).format(pid=pid),
        )


def _severity(seconds: float, transactions: int) -> Severity:
    by_time = by_limits(seconds, warning=LONG, problem=TOO_LONG)
    by_number = by_limits(transactions, warning=MANY, problem=TOO_MANY)
    return max(by_time, by_number, key=lambda each: each.rank)


def _prepared(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    for gid, owner, seconds, transactions in fetch(connection, PREPARED, (MOST,)):
        severity = _severity(seconds, transactions)
        yield CHECK.finding(
            severity if severity is not OK else INFO,
            subject=gid,
            seen=_(
                "The prepared transaction {gid} of {owner} has been open for {age} and "
                "{transactions} transactions."
            ).format(
                gid=f"{gid!r}",
                owner=owner,
                age=short_duration(seconds),
                transactions=f"{transactions:,}",
            ),
            remedy=_(
                "It never ends by itself: run COMMIT PREPARED or ROLLBACK PREPARED with that name."
            ),
        )


def _slots(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    for name, is_active, transactions, kept in fetch(connection, SLOTS):
        severity = by_limits(transactions, warning=MANY, problem=TOO_MANY)
        if severity is OK and not is_active and kept >= MUCH_LOG:
            severity = WARNING
        if severity is not OK:
            template = (
                _(
                    "The replication slot {name}, which is in use, holds back "
                    "{transactions} transactions and {size} of log."
                )
                if is_active
                else _(
                    "The replication slot {name}, which is not in use, holds "
                    "back {transactions} transactions and {size} of log."
                )
            )
            yield CHECK.finding(
                severity,
                subject=name,
                seen=template.format(
                    name=repr(name), transactions=f"{transactions:,}", size=megabytes(kept)
                ),
                remedy=_(
                    "Let its standby catch up, or drop it: SELECT "
                    "pg_drop_replication_slot('{name}')."
                ).format(name=name),
            )
