"""Tables and indexes that are bloated by dead rows.

Bloat is estimated from the planner's statistics, which needs no extension and reads no table: a
B-tree with this many entries of this width needs about this many pages, and an index that is
several times larger is mostly empty. Statistics may be old, and equal keys take less room.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch
from taskqueue.monitoring.doctor.finding import Check, Finding, megabytes, table_names
from taskqueue.monitoring.doctor.words import gettext as _

TABLE_CHECK, INDEX_CHECK = Check("tables"), Check("indexes")

# Fewer dead rows do not matter.
LEAST_DEAD = 50_000
# As a share of the live rows.
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
    for name, living, dead, vacuumed_at, is_left_out, *_octets in rows:
        if is_left_out:
            yield TABLE_CHECK.problem(
                subject=name,
                seen=_("Autovacuum is off for {name}.").format(name=name),
                remedy=f"ALTER TABLE {name} RESET (autovacuum_enabled).",
            )
        if dead >= LEAST_DEAD and dead >= living * SHARE_DEAD:
            yield TABLE_CHECK.warning(
                subject=name,
                seen=_(
                    "{name} has about {dead} dead rows beside {living} live rows; last vacuum: "
                    "{when}."
                ).format(
                    name=name, dead=f"{dead:,}", living=f"{living:,}", when=_when(vacuumed_at)
                ),
                remedy=_(
                    "Check whether a session holds an old snapshot (above), and whether "
                    "autovacuum keeps up; then VACUUM {name}."
                ).format(name=name),
            )
    yield TABLE_CHECK.ok(_sizes(rows))


def _when(moment: datetime | None) -> str:
    return _("never") if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def _sizes(rows: list[tuple[object, ...]]) -> str:
    """Describe the largest three tables, and the total size."""
    total = sum(int(str(row[5])) + int(str(row[6])) for row in rows)
    largest = ", ".join(
        _("{table} {size} and {indexes} of indexes").format(
            table=row[0], size=megabytes(int(str(row[5]))), indexes=megabytes(int(str(row[6])))
        )
        for row in rows[:3]
    )
    return _("The tables take {size}: {largest}.").format(size=megabytes(total), largest=largest)


# A smaller index is read so quickly that its bloat does not matter.
LEAST = 16 * 1024 * 1024
# At least this share of its pages should be needed.
FULL = 0.4
# Octets of an entry in addition to its columns: header and pointer.
ENTRY = 12
PAGE, FILLED = 8192, 0.9

# The assumed octets of a column without statistics: those of an id.
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
                seen=_(
                    "The index {name} takes {size}, where {needed} would do, as estimated from "
                    "statistics."
                ).format(name=name, size=megabytes(size), needed=megabytes(needed)),
                remedy=_(
                    "REINDEX INDEX CONCURRENTLY {name}; run ANALYZE first if the last one was "
                    "long ago."
                ).format(name=name),
            )
    if not found:
        yield INDEX_CHECK.ok(_("No index is bloated, by an estimate."))


def _needed(entries: float, width: float) -> float:
    """Return the octets that an index needs."""
    aligned = -(-width // 8) * 8
    return max(PAGE, entries * (ENTRY + aligned) / FILLED)
