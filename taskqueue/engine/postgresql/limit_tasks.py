"""The tasks that a claim under limits may take on PostgreSQL, as parts of its statements."""

from __future__ import annotations

from taskqueue.engine.postgresql.claim import PAUSES
from taskqueue.engine.rows import MOST_LOOKED_AT

# Whether this worker may run it: it knows the definition, which is not paused.
IS_KNOWN = f"(name <> ALL (%(unknown)s::text[]) AND name <> ALL ({PAUSES}))"
# Whether it may start at all: not everything is paused, and it is not too late.
MAY_START = f"""'' <> ALL ({PAUSES})
            AND (expires_at IS NULL OR started_at IS NOT NULL OR expires_at > clock_timestamp())
            AND (deadline_at IS NULL OR deadline_at > clock_timestamp())"""

# The first tasks of each of the partitions `asked`.
TASKS = f"""
    SELECT asked.id AS partition, ready.*
    FROM asked
    CROSS JOIN LATERAL (
        SELECT
            id, priority, EXTRACT(epoch FROM run_after)::float8 AS due,
            COALESCE((limits ->> 'cost')::int, 1) AS cost,
            {IS_KNOWN} AS is_known,
            COALESCE((limits -> 'tenant' ->> 'weight')::float8, 1) AS weight
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2 AND partition = asked.id
            AND (limits ? 'sequence' OR {IS_KNOWN}) AND {MAY_START}
        ORDER BY priority DESC, run_after, id
        LIMIT asked.most
    ) AS ready
    UNION ALL
    -- The one that holds a sequence up, behind however many others it is.
    SELECT asked.id, holder.*
    FROM asked
    JOIN taskqueue_partition AS own ON own.id = ANY (ARRAY[asked.id])
    CROSS JOIN LATERAL (
        SELECT
            id, priority, EXTRACT(epoch FROM run_after)::float8,
            COALESCE((limits ->> 'cost')::int, 1), {IS_KNOWN},
            COALESCE((limits -> 'tenant' ->> 'weight')::float8, 1)
        FROM taskqueue_task
        WHERE id = own.holder AND status = 'ready' AND partition = asked.id
            AND '' <> ALL ({PAUSES})
            AND (deadline_at IS NULL OR deadline_at > clock_timestamp())
        LIMIT 1
    ) AS holder
    WHERE asked.is_sequence
    UNION ALL
    SELECT of_queue.id, ready.*
    FROM unnest(%(of_queues)s::uuid[], %(queues)s::text[]) AS of_queue (id, queue_name)
    CROSS JOIN LATERAL (
        SELECT id, priority, EXTRACT(epoch FROM run_after)::float8 AS due, 1, true, 1::float8
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name = of_queue.queue_name
            AND {IS_KNOWN} AND {MAY_START}
        ORDER BY priority DESC, run_after, id
        LIMIT %(want)s
    ) AS ready
"""  # noqa: S608  (of constants)

# The best of the first ordinary tasks, or else the last of them: no later task is better.
RIVALS = f"""(
        SELECT json_agg(json_build_array(queue.name, best.priority, best.due))
        FROM unnest(%(rivals)s::text[]) AS queue (name)
        CROSS JOIN LATERAL (
            SELECT priority, EXTRACT(epoch FROM run_after)::float8 AS due
            FROM (
                SELECT
                    id, name, priority, run_after,
                    row_number() OVER (ORDER BY priority DESC, run_after, id) AS number
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 0 AND queue_name = queue.name
                ORDER BY priority DESC, run_after, id
                LIMIT {MOST_LOOKED_AT}
            ) AS first
            WHERE {IS_KNOWN} OR number = {MOST_LOOKED_AT}
            ORDER BY priority DESC, run_after, id
            LIMIT 1
        ) AS best
    )::text"""  # noqa: S608  (of constants)
