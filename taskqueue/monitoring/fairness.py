"""How fairly tenants share a queue: waiting tasks and starts of the largest tenants."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from taskqueue.engine.connections import database_alias
from taskqueue.engine.statement import Statement
from taskqueue.models import Partition
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.reading import read

MOST_TENANTS = 50
# The newest attempts of the last hour, of all queues, that are read.
MOST_ATTEMPTS = 20_000
MOST_PARTITIONS, MOST_COUNTED = 10_000, 1_000

# The partitions of tenants, with their waiting tasks.
WAITING = Statement.of(f"""
SELECT limits, number, {{since run_after}}
FROM (
    SELECT
        CAST(partition.limits AS text) AS limits,
        (
            SELECT count(*)
            FROM (
                SELECT 1
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 2
                    AND partition = partition_of.id
                LIMIT {MOST_COUNTED}
            ) AS counted
        ) AS number,
        (
            SELECT run_after
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 2
                AND partition = partition_of.id
            ORDER BY priority DESC, run_after, id
            LIMIT 1
        ) AS run_after
    FROM (
        SELECT id, limits
        FROM taskqueue_partition
        WHERE queue_name = %(queue)s AND limits IS NOT NULL AND state <> 'empty'
        ORDER BY id
        LIMIT {MOST_PARTITIONS}
    ) AS partition_of
    JOIN taskqueue_partition AS partition ON partition.id = partition_of.id
) AS found
""")  # noqa: S608  (of constants)
# Attempts that were claimed within the last hour, with the waiting times of their tasks.
STARTED = Statement(
    postgresql=f"""
SELECT task.limits::text, GREATEST(
    0, EXTRACT(epoch FROM lease.claimed_at - COALESCE(task.ready_at, task.run_after))::float8
)
FROM (
    SELECT task_id, claimed_at, attempt FROM taskqueue_lease ORDER BY id DESC LIMIT {MOST_ATTEMPTS}
) AS lease
JOIN taskqueue_task AS task ON task.id = lease.task_id
WHERE lease.claimed_at > clock_timestamp() - interval '1 hour'
    AND task.queue_name = %(queue)s AND task.route = 2 AND task.limits ? 'tenant'
""",  # noqa: S608  (of constants)
    sqlite=f"""
SELECT task.limits, max(0.0, 86400.0 * (
    julianday(lease.claimed_at) - julianday(coalesce(task.ready_at, task.run_after))
))
FROM (
    SELECT task_id, claimed_at, attempt FROM taskqueue_lease ORDER BY id DESC LIMIT {MOST_ATTEMPTS}
) AS lease
JOIN taskqueue_task AS task ON task.id = lease.task_id
WHERE julianday(lease.claimed_at) > julianday(%(now)s) - 1.0 / 24
    AND task.queue_name = %(queue)s AND task.route = 2
    AND json_extract(task.limits, '$.tenant') IS NOT NULL
""",  # noqa: S608  (of constants)
)


@dataclass(frozen=True, kw_only=True)
class ShownShare:
    """The share of a queue that one tenant got."""

    key: str
    weight: float
    waiting: int = about(f"Ready tasks, counted up to {MOST_COUNTED:,} of each of its partitions.")
    oldest_seconds: float | None = about("How long the first of them has been due.")
    starts: int = about("Attempts of the last hour, as far as the newest attempts go.")
    wait_p95_seconds: float | None = about("How long 95 % of these had waited at most.")


@dataclass(frozen=True, kw_only=True)
class ShownFairness:
    """How tenants share a queue."""

    queue_name: str
    tenants: list[ShownShare] = about(f"The {MOST_TENANTS} with the most tasks.")
    index: float | None = about(
        "Jain's index of starts by weight, of those that have work: 1 is even, 1/n is all for one."
    )


def has_tenants(queue_name: str) -> bool:
    """Return whether tenants share a queue, according to its partitions."""
    rows = Partition.objects.using(database_alias())
    return rows.filter(queue_name=queue_name, lane__contains='"fair"').exists()


def fairness_of(queue_name: str) -> ShownFairness:
    """Return how the tenants of a queue share it."""
    weights: dict[str, float] = {}
    waiting: dict[str, int] = {}
    oldest: dict[str, float] = {}
    waits: dict[str, list[float]] = {}
    for text, number, seconds in read(WAITING, queue=queue_name):
        if (tenant := _tenant_of(text)) is None or not number:
            continue
        key = tenant["key"]
        weights[key] = tenant["weight"]
        waiting[key] = waiting.get(key, 0) + number
        oldest[key] = max(oldest.get(key, 0.0), float(seconds or 0.0))
    for text, seconds in read(STARTED, queue=queue_name):
        if (tenant := _tenant_of(text)) is not None:
            weights.setdefault(tenant["key"], tenant["weight"])
            waits.setdefault(tenant["key"], []).append(seconds)
    shown = [
        ShownShare(
            key=key,
            weight=weight,
            waiting=waiting.get(key, 0),
            oldest_seconds=oldest.get(key),
            starts=len(waits.get(key, ())),
            wait_p95_seconds=_p95(waits.get(key, [])),
        )
        for key, weight in weights.items()
    ]
    shown.sort(key=lambda share: (-share.waiting, -share.starts, share.key))
    busy = [share.starts / share.weight for share in shown if share.waiting]
    return ShownFairness(queue_name=queue_name, tenants=shown[:MOST_TENANTS], index=jain(busy))


def jain(shares: list[float]) -> float | None:
    """Return Jain's index (Jain, Chiu and Hawe, 1984); None if no tenant got anything."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else None


def _p95(seconds: list[float]) -> float | None:
    return sorted(seconds)[max(0, -(-len(seconds) * 95 // 100) - 1)] if seconds else None


def _tenant_of(text: str) -> Any:
    return json.loads(text).get("tenant")
