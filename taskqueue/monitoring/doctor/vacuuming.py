"""Dead rows, and when the tables were vacuumed last."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch
from taskqueue.monitoring.doctor.finding import OK, PROBLEM, WARNING, Finding
from taskqueue.monitoring.doctor.tables import table_names
from taskqueue.monitoring.doctor.words import megabytes

CHECK = "tables"
LEAST_DEAD = 50_000
"""Fewer dead rows are nothing to speak of."""
SHARE_DEAD = 0.5
"""Of the living ones."""

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
    """The sizes of all, and those with many dead rows."""
    rows = fetch(connection, TABLES, (table_names(),))
    for name, living, dead, vacuumed_at, is_left_out, _, _ in rows:
        if is_left_out:
            yield Finding(
                check=CHECK,
                severity=PROBLEM,
                subject=name,
                seen=f"Autovacuum is turned off for {name}.",
                remedy=f"ALTER TABLE {name} RESET (autovacuum_enabled).",
            )
        if dead >= LEAST_DEAD and dead >= living * SHARE_DEAD:
            yield Finding(
                check=CHECK,
                severity=WARNING,
                subject=name,
                seen=f"{name} has about {dead:,} dead rows beside {living:,} living ones; "
                f"vacuumed last {_when(vacuumed_at)}.",
                remedy="See whether somebody holds an old snapshot (above), and whether autovacuum "
                f"keeps up; then VACUUM {name}.",
            )
    yield Finding(check=CHECK, severity=OK, seen=_sizes(rows))


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
