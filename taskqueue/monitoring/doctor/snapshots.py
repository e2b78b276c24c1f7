"""Who holds an old snapshot: while it is held, no dead row can be removed, and claims get slower.

A session in a transaction, a prepared transaction, or a replication slot.
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
from taskqueue.monitoring.notice import duration

CHECK = Check("snapshots")
# Seconds.
LONG, TOO_LONG = 300.0, 3600.0
# Transactions since.
MANY, TOO_MANY = 1_000_000, 50_000_000
MUCH_LOG = 1024**3
MOST = 5

# Those of other databases do not hold our rows back. What a vacuum sees does not either.
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
    """Yield the oldest session, however young, and others that are old."""
    yield from _rights(connection)
    yield from _sessions(connection)
    yield from _prepared(connection)
    yield from _slots(connection)


def _rights(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    [(user, may_see, hidden)] = fetch(connection, RIGHTS)
    if hidden and not may_see:
        yield CHECK.info(
            subject=user,
            seen=f"The role {user} may not view {hidden} sessions of other roles: an old "
            "snapshot of theirs would go unnoticed.",
            remedy=f'GRANT pg_read_all_stats TO "{user}", or run the doctor as another role.',
        )


def _sessions(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    rows = fetch(connection, SESSIONS, (MOST,))
    if not rows:
        yield CHECK.ok("No other session holds a snapshot.")
    for number, row in enumerate(rows):
        pid, user, application, address, state, seconds, transactions = row
        severity = _severity(seconds, transactions)
        if number and severity is OK:
            continue
        which = "The oldest snapshot is held" if not number else "An old snapshot is held"
        name = f" ({application})" if application else ""
        yield CHECK.finding(
            severity,
            subject=str(pid),
            seen=f"{which} by session {pid}{name} of {user or 'the server'} from {address}, "
            f"{state or 'busy'}, for {duration(seconds)} and {transactions:,} transactions.",
            remedy=""
            if severity is OK
            else f"Check what it does, and end it if possible: SELECT pg_terminate_backend({pid})."
            " Prevent the next one by idle_in_transaction_session_timeout.",
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
            seen=f"The prepared transaction {gid!r} of {owner} has been open for "
            f"{duration(seconds)} and {transactions:,} transactions.",
            remedy="It never ends by itself: run COMMIT PREPARED or ROLLBACK PREPARED with that "
            "name.",
        )


def _slots(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    for name, is_active, transactions, kept in fetch(connection, SLOTS):
        severity = by_limits(transactions, warning=MANY, problem=TOO_MANY)
        if severity is OK and not is_active and kept >= MUCH_LOG:
            severity = WARNING
        if severity is not OK:
            yield CHECK.finding(
                severity,
                subject=name,
                seen=f"The replication slot {name!r}, which is {'' if is_active else 'not '}in use,"
                f" holds back {transactions:,} transactions and {megabytes(kept)} of log.",
                remedy=f"Let its standby catch up, or drop it: SELECT pg_drop_replication_slot("
                f"'{name}').",
            )
