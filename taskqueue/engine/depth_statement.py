"""The statement that counts the ready tasks of each queue, for the record of depths."""

from __future__ import annotations

from taskqueue.engine.statement import Statement

# Tasks that are counted at most of a queue, a partition, or a queue of one pinned worker, and how
# many of these places are seen.
CAP, MOST_PLACES = 50_000, 1_000
# Tasks that are counted of all places of a kind together, and of each at least: the more places
# there are, the fewer of each.
COUNTED, LEAST_COUNTED = 200_000, 500
APART = "route = 1 AND status IN ('ready', 'running')"


def _share(places: str) -> str:
    return f"""(
        SELECT CASE
            WHEN {COUNTED} / count(*) > {CAP} THEN {CAP}
            WHEN {COUNTED} / count(*) < {LEAST_COUNTED} THEN {LEAST_COUNTED}
            ELSE {COUNTED} / count(*)
        END
        FROM {places}
    )"""  # noqa: S608  (of constants)


# Loose scans: of the claim's index queue by queue, of that of partitions one by one, of that of
# pinned tasks by worker and queue. Each place is counted up to its share, so that no deep queue
# hides another. No order but that of an index, and no count without an end.
WAITING = Statement.of(f"""
    WITH RECURSIVE lane (queue_name, place) AS (
        SELECT min(queue_name), 1 FROM taskqueue_task WHERE status = 'ready' AND route = 0
        UNION ALL
        SELECT (
            SELECT min(queue_name)
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0 AND queue_name > lane.queue_name
        ), place + 1
        FROM lane
        WHERE lane.queue_name IS NOT NULL AND place <= {MOST_PLACES}
    ), part (id, place) AS (
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
            WHERE status = 'ready' AND route = 2 AND partition > part.id
            ORDER BY partition
            LIMIT 1
        ), place + 1
        FROM part
        WHERE part.id IS NOT NULL AND place <= {MOST_PLACES}
    ), worker (name, place) AS (
        SELECT min(pinned_to), 1 FROM taskqueue_task WHERE {APART}
        UNION ALL
        SELECT (
            SELECT min(pinned_to) FROM taskqueue_task WHERE {APART} AND pinned_to > worker.name
        ), place + 1
        FROM worker
        WHERE worker.name IS NOT NULL AND place <= {MOST_PLACES}
    ), apart (name, queue_name, place) AS (
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
    )
    SELECT queue_name, number, CASE WHEN number >= most THEN 1 ELSE 0 END
    FROM (
        SELECT queue_name, {_share("lane")} AS most, (
            SELECT count(*)
            FROM (
                SELECT 1
                FROM taskqueue_task AS task
                WHERE task.status = 'ready' AND task.route = 0
                    AND task.queue_name = lane.queue_name
                ORDER BY task.priority DESC
                LIMIT {_share("lane")}
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
        ), {_share("part")}, (
            SELECT count(*)
            FROM (
                SELECT 1
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 2 AND partition = part.id
                LIMIT {_share("part")}
            ) AS counted
        )
        FROM part
        WHERE id IS NOT NULL
        UNION ALL
        SELECT queue_name, {_share("apart")}, (
            SELECT count(*)
            FROM (
                SELECT 1
                FROM taskqueue_task
                WHERE {APART} AND status = 'ready'
                    AND pinned_to = apart.name AND queue_name = apart.queue_name
                ORDER BY priority DESC
                LIMIT {_share("apart")}
            ) AS counted
        )
        FROM apart
        WHERE queue_name IS NOT NULL
    ) AS found
    WHERE number > 0
""")  # noqa: S608  (of constants)
