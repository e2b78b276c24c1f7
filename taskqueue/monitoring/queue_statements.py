"""The statements that count waiting and running tasks of each queue, for each database.

They return rows with a kind, a queue, a number of tasks, the seconds for which the oldest has
waited, and as JSON text the names of the only workers that may take them:

- `ready`: a loose scan of the claim's index, one probe for each queue and priority. Within a
  priority the oldest comes first, so its age costs nothing more. The count stops at a limit.
- `apart`: ready tasks that not every worker may take: the first of all of them, up to a limit.
- `limited`: ready tasks of partitions, by a loose scan of the index of their claim: the first
  partitions; the more partitions, the fewer tasks of each. Instead of names, the row has
  whether there may be more.
- `running`: the tasks of running leases, by the index of these.

If a statement must be made to use an index, its ORDER BY does so.
"""

from taskqueue.engine.ready_partitions import MOST_PARTITIONS, READY_PARTITIONS
from taskqueue.engine.statement import Statement

# The fewest ready tasks that are counted of each partition.
LEAST_COUNTED = 20
_PARTS = f"""{READY_PARTITIONS}, share (most) AS (
    SELECT {{greatest}}({LEAST_COUNTED}, %(cap)s / {{greatest}}(1, count(*))) FROM part
), limited (queue_name, run_after, number, place) AS (
    SELECT
        (
            SELECT queue_name
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 2
                AND partition = part.id
            ORDER BY priority DESC, run_after, id
            LIMIT 1
        ),
        (
            SELECT run_after
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 2
                AND partition = part.id
            ORDER BY priority DESC, run_after, id
            LIMIT 1
        ),
        (
            SELECT count(*)
            FROM (
                SELECT 1
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 2
                    AND partition = part.id
                LIMIT (SELECT most FROM share)
            ) AS counted
        ),
        place
    FROM part
    WHERE id IS NOT NULL
)"""  # noqa: S608  (of constants)
_LIMITED = f"""
SELECT
    'limited', queue_name, {{sum}}, {{oldest}},
    CASE
        WHEN max(number) >= (SELECT most FROM share) OR max(place) > {MOST_PARTITIONS} THEN 'more'
    END
FROM limited
GROUP BY queue_name
"""  # noqa: S608  (of constants)
_POSTGRESQL = f"""
WITH RECURSIVE {
    _PARTS.format(greatest="greatest")
}, lane (queue_name, priority, run_after, place, is_first) AS (
    (
        SELECT queue_name, priority, run_after, 1, true
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name >= %(first)s
        ORDER BY queue_name, priority DESC, run_after
        LIMIT 1
    )
    UNION ALL
    SELECT step.queue_name, step.priority, step.run_after, step.place, step.is_first
    FROM lane
    CROSS JOIN LATERAL (
        (
            SELECT queue_name, priority, run_after, lane.place, false AS is_first
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0
                AND queue_name = lane.queue_name AND priority < lane.priority
            ORDER BY priority DESC, run_after
            LIMIT 1
        )
        UNION ALL
        (
            SELECT queue_name, priority, run_after, lane.place + 1, true
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0
                AND lane.is_first AND lane.place < %(limit)s AND queue_name > lane.queue_name
            ORDER BY queue_name, priority DESC, run_after
            LIMIT 1
        )
    ) AS step
), oldest AS (
    SELECT queue_name, min(run_after) AS run_after FROM lane GROUP BY queue_name
), apart AS (
    SELECT queue_name, run_after, worker_names::text AS worker_names
    FROM taskqueue_task
    WHERE route = 1 AND status = 'ready'
    ORDER BY pinned_to, queue_name
    LIMIT %(cap)s
), held AS (
    SELECT task_id FROM taskqueue_lease WHERE status = 'running' ORDER BY worker_id LIMIT %(cap)s
)
SELECT
    'ready', queue_name,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM taskqueue_task AS task
            WHERE task.status = 'ready' AND task.route = 0
                AND task.queue_name = oldest.queue_name
            ORDER BY task.priority DESC
            LIMIT %(cap)s
        ) AS counted
    ),
    EXTRACT(epoch FROM clock_timestamp() - run_after)::float8, NULL
FROM oldest
UNION ALL
SELECT
    'apart', queue_name, count(*),
    EXTRACT(epoch FROM clock_timestamp() - min(run_after))::float8, worker_names
FROM apart
GROUP BY queue_name, worker_names
UNION ALL
{
    _LIMITED.format(
        sum="sum(number)::bigint",
        oldest="EXTRACT(epoch FROM clock_timestamp() - min(run_after))::float8",
    )
}
UNION ALL
SELECT 'running', task.queue_name, count(*), NULL, NULL
FROM held
JOIN taskqueue_task AS task ON task.id = held.task_id
GROUP BY task.queue_name
"""  # noqa: S608  (of constants)

# SQLite needs the condition of a partial index word by word.
_SQLITE = f"""
WITH RECURSIVE {_PARTS.format(greatest="max")}, lane (queue_name, place) AS (
    SELECT min(queue_name), 1
    FROM taskqueue_task
    WHERE status = 'ready' AND route = 0
        AND queue_name >= %(first)s
    UNION ALL
    SELECT (
        SELECT min(queue_name)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0
            AND queue_name > lane.queue_name
    ), place + 1
    FROM lane
    WHERE lane.queue_name IS NOT NULL AND place < %(limit)s
), step (queue_name, priority) AS (
    SELECT queue_name, (
        SELECT max(priority)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0
            AND queue_name = lane.queue_name
    )
    FROM lane
    WHERE queue_name IS NOT NULL
    UNION ALL
    SELECT queue_name, (
        SELECT max(priority)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0
            AND queue_name = step.queue_name AND priority < step.priority
    )
    FROM step
    WHERE step.priority IS NOT NULL
), oldest (queue_name, run_after) AS (
    SELECT queue_name, min((
        SELECT min(run_after)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0
            AND queue_name = step.queue_name AND priority = step.priority
    ))
    FROM step
    GROUP BY queue_name
)
SELECT
    'ready', queue_name,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM taskqueue_task AS task
            WHERE task.status = 'ready'
                AND task.route = 0
                AND task.queue_name = oldest.queue_name
            LIMIT %(cap)s
        )
    ),
    (julianday(%(now)s) - julianday(run_after)) * 86400.0, NULL
FROM oldest
UNION ALL
SELECT
    'apart', queue_name, count(*),
    (julianday(%(now)s) - julianday(min(run_after))) * 86400.0, worker_names
FROM (
    SELECT queue_name, run_after, worker_names
    FROM taskqueue_task
    WHERE route = 1
        AND status IN ('ready', 'running') AND status = 'ready'
    ORDER BY pinned_to, queue_name
    LIMIT %(cap)s
)
GROUP BY queue_name, worker_names
UNION ALL
{
    _LIMITED.format(
        sum="sum(number)", oldest="(julianday(%(now)s) - julianday(min(run_after))) * 86400.0"
    )
}
UNION ALL
SELECT 'running', task.queue_name, count(*), NULL, NULL
FROM (
    SELECT task_id FROM taskqueue_lease WHERE status = 'running' ORDER BY worker_id LIMIT %(cap)s
) AS held
JOIN taskqueue_task AS task ON task.id = held.task_id
GROUP BY task.queue_name
"""  # noqa: S608  (of constants)

LANES = Statement(postgresql=_POSTGRESQL, sqlite=_SQLITE)
