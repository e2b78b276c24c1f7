"""Dead rows: who holds an old snapshot, so that none can be removed, and what they bloat.

A session in a transaction, a prepared transaction, or a replication slot holds one.

Bloat is estimated from the planner's statistics, which needs no extension and reads no table: a
B-tree of so many entries of such a width needs about so many pages, and one that is several times
larger is mostly empty. Statistics may be old, and equal keys take less room.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

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
    table_names,
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


TABLE_CHECK, INDEX_CHECK = Check("tables"), Check("indexes")

# Fewer dead rows are nothing to speak of.
LEAST_DEAD = 50_000
# Of the living ones.
SHARE_DEAD = 0.5

TABLES = """
SELECT
    class.relname::text, stat.n_live_tup, stat.n_dead_tup,
    GREATEST(stat.last_vacuum, stat.last_autovacuum),
    COALESCE(class.reloptions::text, '') ~ 'autovacuum_enabled=(false|off|0|no)',
    pg_table_size(class.oid), pg_indexes_size(class.oid)
FROM unnest(%s::text[]) AS name
JOIN pg_class AS class ON class.oid = to_regclass(quote_ident(name))
JOIN pg_stat_user_tables AS stat ON stat.relid = class.oid
ORDER BY pg_total_relation_size(class.oid) DESC
"""


def look_at_tables(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield the sizes of all tables, and those with many dead rows."""
    rows = fetch(connection, TABLES, (table_names(),))
    for name, living, dead, vacuumed_at, is_left_out, _, _ in rows:
        if is_left_out:
            yield TABLE_CHECK.problem(
                subject=name,
                seen=f"Autovacuum is off for {name}.",
                remedy=f"ALTER TABLE {name} RESET (autovacuum_enabled).",
            )
        if dead >= LEAST_DEAD and dead >= living * SHARE_DEAD:
            yield TABLE_CHECK.warning(
                subject=name,
                seen=f"{name} has about {dead:,} dead rows beside {living:,} live rows; "
                f"last vacuum: {_when(vacuumed_at)}.",
                remedy="Check whether a session holds an old snapshot (above), and whether "
                "autovacuum "
                f"keeps up; then VACUUM {name}.",
            )
    yield TABLE_CHECK.ok(_sizes(rows))


def _when(moment: datetime | None) -> str:
    return "never" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def _sizes(rows: list[tuple[object, ...]]) -> str:
    """The largest three, and what all take."""
    total = sum(int(str(row[5])) + int(str(row[6])) for row in rows)
    largest = ", ".join(
        f"{row[0]} {megabytes(int(str(row[5])))} and {megabytes(int(str(row[6])))} of indexes"
        for row in rows[:3]
    )
    return f"The tables take {megabytes(total)}: {largest}."


# A smaller index is read so fast that it does not matter.
LEAST = 16 * 1024 * 1024
# Of its pages so much should be needed.
FULL = 0.4
# Octets of an entry beside its columns: header and pointer.
ENTRY = 12
PAGE, FILLED = 8192, 0.9

# Of a column without statistics nothing is known: 16 octets, as an id has.
INDEXES = """
SELECT
    class.relname::text, pg_relation_size(class.oid), class.reltuples::float8,
    sum(COALESCE(stats.avg_width, 16))
FROM unnest(%s::text[]) AS name
JOIN pg_class AS owner ON owner.oid = to_regclass(quote_ident(name))
JOIN pg_index ON pg_index.indrelid = owner.oid
JOIN pg_class AS class ON class.oid = pg_index.indexrelid
JOIN pg_am AS method ON method.oid = class.relam AND method.amname = 'btree'
CROSS JOIN unnest(pg_index.indkey::int[]) AS key (number)
LEFT JOIN pg_attribute AS attribute
    ON attribute.attrelid = owner.oid AND attribute.attnum = key.number
LEFT JOIN pg_stats AS stats
    ON stats.schemaname = owner.relnamespace::regnamespace::text
    AND stats.tablename = owner.relname
    AND stats.attname = attribute.attname
WHERE class.reltuples >= 0
GROUP BY class.oid, class.relname, class.reltuples
ORDER BY pg_relation_size(class.oid) DESC, class.relname
"""


def look_at_indexes(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Yield indexes that are several times as large as necessary."""
    found = False
    for name, size, entries, width in fetch(connection, INDEXES, (table_names(),)):
        needed = _needed(float(entries), float(width))
        if size >= LEAST and needed < size * FULL:
            found = True
            yield INDEX_CHECK.warning(
                subject=name,
                seen=f"The index {name} takes {megabytes(size)}, where {megabytes(needed)} would "
                "do, as estimated from statistics.",
                remedy=f"REINDEX INDEX CONCURRENTLY {name}; run ANALYZE first if the last one was "
                "long ago.",
            )
    if not found:
        yield INDEX_CHECK.ok("No index is bloated, by an estimate.")


def _needed(entries: float, width: float) -> float:
    """Octets."""
    aligned = -(-width // 8) * 8
    return max(PAGE, entries * (ENTRY + aligned) / FILLED)
