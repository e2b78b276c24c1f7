"""Index bloat, estimated from the planner's statistics: no extension is needed, nothing is read.

A B-tree of so many entries of such a width needs about so many pages; one that is several times
larger is mostly empty. It is an estimate: statistics may be old, and equal keys take less room.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.statement import fetch
from taskqueue.monitoring.doctor.finding import OK, WARNING, Finding
from taskqueue.monitoring.doctor.tables import table_names
from taskqueue.monitoring.doctor.words import megabytes

CHECK = "indexes"
LEAST = 16 * 1024 * 1024
"""A smaller index is read so fast that it does not matter."""
FULL = 0.4
"""Of its pages so much should be needed."""
ENTRY = 12
"""Octets of an entry beside its columns: header and pointer."""
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
    """Those that look several times as large as they need be."""
    found = False
    for name, size, entries, width in fetch(connection, INDEXES, (table_names(),)):
        needed = _needed(float(entries), float(width))
        if size >= LEAST and needed < size * FULL:
            found = True
            yield Finding(
                check=CHECK,
                severity=WARNING,
                subject=name,
                seen=f"The index {name} takes {megabytes(size)}, where {megabytes(needed)} would "
                "do, by an estimate from statistics.",
                remedy=f"REINDEX INDEX CONCURRENTLY {name}; ANALYZE first, if that was long ago.",
            )
    if not found:
        yield Finding(check=CHECK, severity=OK, seen="No index looks bloated, by an estimate.")


def _needed(entries: float, width: float) -> float:
    """Octets."""
    aligned = -(-width // 8) * 8
    return max(PAGE, entries * (ENTRY + aligned) / FILLED)
