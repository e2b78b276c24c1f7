"""What failed lately and will be tried again, grouped by task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskqueue.engine.connections import project_connection
from taskqueue.engine.sqlite.values import loaded
from taskqueue.engine.statement import fetch
from taskqueue.monitoring.failures import LONGEST_MESSAGE, NEWEST

# Reads the newest of them by the index of what waits, then for each group the last attempt of one
# task by its key: while it is retried, a task itself tells no error.
_RETRYING = """
WITH newest AS MATERIALIZED (
    SELECT id, name, attempt, run_after
    FROM taskqueue_task
    WHERE {retrying}
    ORDER BY id DESC
    LIMIT %s
), placed AS (
    SELECT
        id, name, attempt, run_after,
        row_number() OVER (PARTITION BY name ORDER BY id DESC) AS place
    FROM newest
), grouped AS (
    SELECT
        name, count(*) AS number, min(run_after) AS next_at, {example} AS example_id,
        max(CASE WHEN place = 1 THEN attempt END) AS attempt,
        sum(count(*)) OVER () AS looked_at
    FROM placed
    GROUP BY name
    ORDER BY number DESC, name
    LIMIT %s
)
SELECT
    grouped.name, grouped.number, grouped.next_at, grouped.example_id,
    COALESCE(lease.error_class, ''), COALESCE(substr(lease.error_message, 1, %s), ''),
    grouped.looked_at
FROM grouped
LEFT JOIN taskqueue_lease AS lease
    ON lease.task_id = grouped.example_id AND lease.attempt = grouped.attempt
ORDER BY grouped.number DESC, grouped.name
"""
_EXAMPLE = {
    "postgresql": "(array_agg(id) FILTER (WHERE place = 1))[1]",
    "sqlite": "max(CASE WHEN place = 1 THEN id END)",
}
# SQLite wants the words of the partial index; PostgreSQL would take them for a second condition.
_IS_RETRYING = {
    "postgresql": "status = 'retrying'",
    "sqlite": "status = 'retrying' AND status IN ('blocked', 'retrying', 'scheduled')",
}
RETRYING = {
    vendor: _RETRYING.format(example=example, retrying=_IS_RETRYING[vendor])
    for vendor, example in _EXAMPLE.items()
}


@dataclass(frozen=True, kw_only=True)
class RetryingGroup:
    """Tasks of one name that wait for their next attempt."""

    name: str
    count: int
    next_at: datetime
    """When the first of them is tried again."""
    example_id: UUID
    """The newest of them; what follows is of its last attempt."""
    example_error: str
    example_message: str


@dataclass(frozen=True, kw_only=True)
class Retrying:
    """The groups, the largest first."""

    groups: list[RetryingGroup]
    looked_at: int
    is_capped: bool
    """Whether there are more, older ones, that were not looked at."""


def retrying(*, limit: int = 100) -> Retrying:
    """The newest tasks that are retried, grouped; up to `limit` groups, in one statement.

    The example's error is that of an attempt: for those who may view attempts.
    """
    connection = project_connection()
    rows = fetch(connection, RETRYING[connection.vendor], (NEWEST + 1, limit, LONGEST_MESSAGE))
    looked_at = int(rows[0][-1]) if rows else 0
    return Retrying(
        groups=[_group(*row[:-1]) for row in rows],
        looked_at=min(looked_at, NEWEST),
        is_capped=looked_at > NEWEST,
    )


def _group(
    name: str, count: int, next_at: Any, example: Any, error: str, message: str
) -> RetryingGroup:
    at = loaded(next_at)
    assert at is not None
    return RetryingGroup(
        name=name,
        count=count,
        next_at=at,
        example_id=example if isinstance(example, UUID) else UUID(example),
        example_error=error,
        example_message=message,
    )
