"""The statement that counts the ready tasks of each queue, for the record of depths."""

from __future__ import annotations

from taskqueue.engine.ready_partitions import READY_PARTITIONS
from taskqueue.engine.statement import Statement

# The most tasks that are counted of a queue, a partition, or a queue of one pinned worker, and the
# most queues and workers that are looked at.
CAP, MOST_PLACES = 50_000, 1_000
# The most tasks counted of all places of a kind together, and the fewest of each: the more places
# there are, the fewer tasks are counted of each.
COUNTED, LEAST_COUNTED = 200_000, 500
APART = "route = 1 AND status IN ('ready', 'running')"


# Loose scans: of the claim's index queue by queue, of the index of partitions one by one, and of
# the index of pinned tasks by worker and queue. Each place is counted up to its share, so that no
# deep queue hides another. Only orders that an index has, and no unbounded counts.
_LANES = f"""lane (queue_name, place) AS (
    SELECT min(queue_name), 1 FROM taskqueue_task WHERE status = 'ready' AND route = 0
    UNION ALL
    SELECT (
        SELECT min(queue_name)
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0 AND queue_name > lane.queue_name
    ), place + 1
    FROM lane
    WHERE lane.queue_name IS NOT NULL AND place <= {MOST_PLACES}
)"""  # noqa: S608  (of constants)
_WORKERS = f"""worker (name, place) AS (
    SELECT min(pinned_to), 1 FROM taskqueue_task WHERE {APART}
    UNION ALL
    SELECT (
        SELECT min(pinned_to) FROM taskqueue_task WHERE {APART} AND pinned_to > worker.name
    ), place + 1
    FROM worker
    WHERE worker.name IS NOT NULL AND place <= {MOST_PLACES}
)"""  # noqa: S608  (of constants)
_QUEUES_OF_WORKERS = f"""apart (name, queue_name, place) AS (
    SELECT name, (
        SELECT min(queue_name) FROM taskqueue_task WHERE {APART} AND pinned_to = worker.name
    ), 1
    FROM worker
    WHERE name IS NOT NULL
    UNION ALL
    SELECT name, (
        SELECT min(queue_name)
        FROM taskqueue_task
        WHERE {APART} AND pinned_to = apart.name AND queue_name > apart.queue_name
    ), place + 1
    FROM apart
    WHERE apart.queue_name IS NOT NULL AND place <= {MOST_PLACES}
)"""  # noqa: S608  (of constants)


def _share_of(places: str) -> str:
    return f"""share_of_{places} (most) AS (
    SELECT CASE
        WHEN {COUNTED} / count(*) > {CAP} THEN {CAP}
        WHEN {COUNTED} / count(*) < {LEAST_COUNTED} THEN {LEAST_COUNTED}
        ELSE {COUNTED} / count(*)
    END
    FROM {places}
)"""  # noqa: S608  (of constants)


WAITING = Statement.of(f"""
WITH RECURSIVE {_LANES}, {READY_PARTITIONS}, {_WORKERS}, {_QUEUES_OF_WORKERS},
{_share_of("lane")}, {_share_of("part")}, {_share_of("apart")}
SELECT queue_name, number, CASE WHEN number >= most THEN 1 ELSE 0 END
FROM (
    SELECT queue_name, (SELECT most FROM share_of_lane) AS most, (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM taskqueue_task AS task
            WHERE task.status = 'ready' AND task.route = 0
                AND task.queue_name = lane.queue_name
            ORDER BY task.priority DESC
            LIMIT (SELECT most FROM share_of_lane)
        ) AS counted
    ) AS number
    FROM lane
    WHERE queue_name IS NOT NULL
    UNION ALL
    SELECT (
        SELECT queue_name
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 2 AND partition = part.id
        ORDER BY priority DESC
        LIMIT 1
    ), (SELECT most FROM share_of_part), (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 2 AND partition = part.id
            LIMIT (SELECT most FROM share_of_part)
        ) AS counted
    )
    FROM part
    WHERE id IS NOT NULL
    UNION ALL
    SELECT queue_name, (SELECT most FROM share_of_apart), (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM taskqueue_task
            WHERE {APART} AND status = 'ready'
                AND pinned_to = apart.name AND queue_name = apart.queue_name
            ORDER BY priority DESC
            LIMIT (SELECT most FROM share_of_apart)
        ) AS counted
    )
    FROM apart
    WHERE queue_name IS NOT NULL
) AS found
WHERE number > 0
""")  # noqa: S608  (of constants)
