"""Metrics of limits: how long tasks waited for places, and how often rows were repaired."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import execute
from taskqueue.engine.statement import Statement

# The most limiters that are looked at.
MOST_LIMITERS = 10_000
# The most seconds between two looks at a limit for it to count as full in between.
LONGEST_GAP = 30
# Any number of workers take turns: each adds the time since the last look of any worker. The
# limiters are found by a loose scan of the index of waiting partitions, however many there are.
#
# Locks: counts by their names.
SATURATED = Statement.of(f"""
WITH RECURSIVE waited (id) AS (
    SELECT (
        SELECT waits_for
        FROM taskqueue_partition
        WHERE waits_for IS NOT NULL
        ORDER BY waits_for
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT partition.waits_for
        FROM taskqueue_partition AS partition
        WHERE partition.waits_for > waited.id
        ORDER BY partition.waits_for
        LIMIT 1
    )
    FROM waited
    WHERE waited.id IS NOT NULL
)
INSERT INTO taskqueue_limitcount (what, name, number, counted_at)
SELECT 'saturated', bound.name, 0.0, {{now}}
FROM taskqueue_limit AS bound
WHERE bound.id IN (
    SELECT (SELECT limit_id FROM taskqueue_limiter WHERE id = first.id)
    FROM (SELECT id FROM waited WHERE id IS NOT NULL LIMIT {MOST_LIMITERS}) AS first
)
ORDER BY bound.name
ON CONFLICT (what, name) DO UPDATE
SET number = taskqueue_limitcount.number + CASE
        WHEN {{since taskqueue_limitcount.counted_at}} <= {LONGEST_GAP}
        THEN {{since taskqueue_limitcount.counted_at}}
        ELSE 0.0
    END,
    counted_at = {{now}}
""")  # noqa: S608  (of constants)
REPAIRED = Statement.of("""
INSERT INTO taskqueue_limitcount (what, name, number, counted_at)
VALUES ('repaired', '', %(number)s, {now})
ON CONFLICT (what, name) DO UPDATE
SET number = taskqueue_limitcount.number + %(number)s, counted_at = {now}
""")


def count_saturated(connection: BaseDatabaseWrapper) -> None:
    """Add the time since the last look to the limits for whose places tasks wait."""
    execute(connection, SATURATED)


def count_repaired(connection: BaseDatabaseWrapper, number: int) -> None:
    """Count partitions that were opened because they stood still."""
    execute(connection, REPAIRED, number=number)
