"""The statements that count running and waiting tasks of limits, for each database.

The ready tasks of a partition are counted by the index of its claim; the more partitions there are,
the fewer tasks are counted of each. So a statement reads a bounded number of entries, however many
tasks wait.
"""

from __future__ import annotations

from taskqueue.engine.statement import Statement

# The most partitions that are read, and the most ready tasks that are counted in all of them
# together; of each partition at least this many.
MOST_PARTITIONS, MOST_COUNTED, LEAST_COUNTED = 10_000, 100_000, 20
# The most limiters of one limit that are read.
MOST_LIMITERS = 10_000

# By limit: the number of leases that take a place, and of those for the key with the most. There
# are no more of them than running attempts.
RUNNING = Statement.of("""
SELECT limiter.limit_id, CAST(sum(taken.number) AS bigint), max(taken.number)
FROM (
    SELECT slot.limiter_id, count(*) AS number
    FROM taskqueue_slot AS slot
    JOIN taskqueue_lease AS lease ON lease.id = slot.lease_id
    WHERE lease.finished_at IS NULL
    GROUP BY slot.limiter_id
) AS taken
JOIN taskqueue_limiter AS limiter ON limiter.id = taken.limiter_id
GROUP BY limiter.limit_id
""")

# The most ready tasks of each partition that are counted.
_SHARE = f"""(
        SELECT {{greatest}}({LEAST_COUNTED}, {MOST_COUNTED} / {{greatest}}(1, count(*))) FROM closed
    )"""  # noqa: S608  (of constants)
# The number of ready tasks in a partition, up to its share of those that are counted.
_COUNTED = f"""(
        SELECT count(*)
        FROM (
            SELECT 1
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 2
                AND partition = closed.id
            LIMIT {_SHARE}
        ) AS counted
    )"""  # noqa: S608  (of constants)
# Partitions that wait for a place, and those that wait for a token with each of their limiters.
_CLOSED = f"""closed (id, limiter_id, is_full) AS {{materialized}} (
    SELECT id, waits_for, true
    FROM (
        SELECT id, waits_for
        FROM taskqueue_partition
        WHERE waits_for IS NOT NULL
        ORDER BY waits_for
        LIMIT {MOST_PARTITIONS}
    ) AS full_ones
    UNION ALL
    SELECT held.id, {{limiter}}, false
    FROM (
        SELECT id, limiters
        FROM taskqueue_partition
        WHERE opens_at IS NOT NULL AND waits_for IS NULL
        ORDER BY opens_at
        LIMIT {MOST_PARTITIONS}
    ) AS held
    CROSS JOIN {{each}}
)"""  # noqa: S608  (of constants)
# By limit: the ready tasks of closed partitions, and whether there may be more.
_WAITING = f"""
WITH {_CLOSED}, waiting AS (
    SELECT
        limiter.limit_id,
        {_COUNTED} AS number,
        {_SHARE} AS most
    FROM closed
    JOIN taskqueue_limiter AS limiter ON limiter.id = closed.limiter_id
    JOIN taskqueue_limit AS bound ON bound.id = limiter.limit_id
    WHERE closed.is_full OR bound.rate IS NOT NULL
)
SELECT limit_id, {{sum}}, max(CASE WHEN number >= most THEN 1 ELSE 0 END)
FROM waiting
GROUP BY limit_id
"""  # noqa: S608  (of constants)
# For a limited queue: all of its ready ordinary tasks.
OF_QUEUES = Statement.of("""
SELECT limiter.limit_id, (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM taskqueue_task
        WHERE status = 'ready' AND route = 0
            AND queue_name = queue.name
        ORDER BY queue_name, priority DESC, run_after, id
        LIMIT %(cap)s
    ) AS counted
), (
    SELECT {since taskqueue_task.run_after}
    FROM taskqueue_task
    WHERE status = 'ready' AND route = 0
        AND queue_name = queue.name
    ORDER BY queue_name, priority DESC, run_after, id
    LIMIT 1
)
FROM taskqueue_queue AS queue
JOIN taskqueue_limiter AS limiter ON limiter.id = queue.limiter_id
WHERE queue.limiter_id IS NOT NULL
""")
# The keys of one limit, those with the most ready tasks first: key, starts, running tasks, waiting
# tasks, since when they wait, and whether there may be more.
_KEYS = f"""
WITH {_CLOSED}, own AS {{materialized}} (
    SELECT id, {{key}} AS key, {{starts}} AS starts
    FROM taskqueue_limiter
    WHERE limit_id = %(limit)s
    ORDER BY id
    LIMIT {MOST_LIMITERS}
), waiting AS {{materialized}} (
    SELECT
        closed.limiter_id,
        {_COUNTED} AS number,
        {_SHARE} AS most,
        (
            SELECT run_after
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 2
                AND partition = closed.id
            ORDER BY priority DESC, run_after, id
            LIMIT 1
        ) AS oldest
    FROM closed
    JOIN own ON own.id = closed.limiter_id
    WHERE closed.is_full OR %(has_rate)s
), summed AS (
    SELECT
        limiter_id, {{sum}} AS number, min(oldest) AS oldest,
        max(CASE WHEN number >= most THEN 1 ELSE 0 END) AS is_capped
    FROM waiting
    GROUP BY limiter_id
)
SELECT
    own.key, own.starts,
    (
        SELECT count(*)
        FROM taskqueue_slot AS slot
        JOIN taskqueue_lease AS lease ON lease.id = slot.lease_id
        WHERE slot.limiter_id = own.id AND lease.finished_at IS NULL
    ) AS running,
    COALESCE(summed.number, 0) AS waiting, {{oldest}}, COALESCE(summed.is_capped, 0)
FROM own
LEFT JOIN summed ON summed.limiter_id = own.id
ORDER BY waiting DESC, running DESC, own.key
LIMIT %(most)s
"""  # noqa: S608  (of constants)
# Recent starts of limiters with a rate, for the first limiters of each limit.
STARTS = Statement(
    postgresql="""
SELECT bound.id, limiter.starts::text
FROM taskqueue_limit AS bound
CROSS JOIN LATERAL (
    SELECT starts FROM taskqueue_limiter WHERE limit_id = bound.id ORDER BY id LIMIT %(most)s
) AS limiter
WHERE bound.rate IS NOT NULL AND limiter.starts IS NOT NULL
""",
    sqlite="""
SELECT bound.id, limiter.starts
FROM taskqueue_limit AS bound
JOIN taskqueue_limiter AS limiter ON limiter.limit_id = bound.id
WHERE bound.rate IS NOT NULL AND limiter.starts IS NOT NULL
LIMIT %(most)s * 100
""",
)

_POSTGRESQL = {
    "greatest": "greatest",
    "materialized": "MATERIALIZED",
    "limiter": "own.id::uuid",
    "each": "LATERAL jsonb_array_elements_text(held.limiters) AS own (id)",
    "sum": "sum(number)::bigint",
    "key": "key",
    "starts": "starts::text",
    "oldest": "EXTRACT(epoch FROM clock_timestamp() - summed.oldest)::float8",
}
_SQLITE = {
    "greatest": "max",
    "materialized": "MATERIALIZED",
    "limiter": "own.value",
    "each": "json_each(held.limiters) AS own",
    "sum": "sum(number)",
    "key": '"key"',
    "starts": "starts",
    "oldest": "(julianday(%(now)s) - julianday(summed.oldest)) * 86400.0",
}
WAITING = Statement(postgresql=_WAITING.format(**_POSTGRESQL), sqlite=_WAITING.format(**_SQLITE))
KEYS = Statement(postgresql=_KEYS.format(**_POSTGRESQL), sqlite=_KEYS.format(**_SQLITE))
