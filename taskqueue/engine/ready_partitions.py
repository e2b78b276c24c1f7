"""SQL for the partitions that have ready tasks."""

from __future__ import annotations

# The most partitions that are read.
MOST_PARTITIONS = 1_000
# For a WITH RECURSIVE: a loose scan of the index of their claim. Its last row has no id if all
# partitions were read; a row beyond the limit says that there may be more.
READY_PARTITIONS = f"""part (id, place) AS (
    SELECT (
        SELECT partition
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2
        ORDER BY partition
        LIMIT 1
    ), 1
    UNION ALL
    SELECT (
        SELECT partition
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2
            AND partition > part.id
        ORDER BY partition
        LIMIT 1
    ), place + 1
    FROM part
    WHERE part.id IS NOT NULL AND place <= {MOST_PARTITIONS}
)"""  # noqa: S608  (of constants)
