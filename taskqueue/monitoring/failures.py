"""What failed lately, grouped by error and task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskqueue.engine.connections import project_connection
from taskqueue.engine.sqlite.values import loaded
from taskqueue.engine.statement import fetch

NEWEST = 10_000
"""Failed tasks that are looked at."""
LONGEST_MESSAGE = 1000
"""Characters of an example."""

# Reads the newest failed tasks by the index of what has ended, then one row for each group by its
# key. What is of one moment is told apart by the key.
_FAILURES = """
WITH newest AS MATERIALIZED (
    SELECT id, error_class, name, finished_at
    FROM taskqueue_task
    WHERE status = 'failed' AND finished_at IS NOT NULL
    ORDER BY finished_at DESC, id DESC
    LIMIT %s
), placed AS (
    SELECT
        id, error_class, name, finished_at,
        row_number() OVER (
            PARTITION BY error_class, name
            ORDER BY finished_at DESC, id DESC
        ) AS place
    FROM newest
), grouped AS (
    SELECT
        error_class, name, count(*) AS number,
        min(finished_at) AS first_seen, max(finished_at) AS last_seen,
        {example} AS example_id,
        sum(count(*)) OVER () AS looked_at
    FROM placed
    GROUP BY error_class, name
    ORDER BY number DESC, last_seen DESC, error_class, name
    LIMIT %s
)
SELECT
    grouped.error_class, grouped.name, grouped.number, grouped.first_seen, grouped.last_seen,
    grouped.example_id,
    COALESCE((
        SELECT substr(task.error_message, 1, %s)
        FROM taskqueue_task AS task
        WHERE task.id = grouped.example_id
    ), ''),
    grouped.looked_at
FROM grouped
ORDER BY grouped.number DESC, grouped.last_seen DESC, grouped.error_class, grouped.name
"""
_EXAMPLE = {
    "postgresql": "(array_agg(id) FILTER (WHERE place = 1))[1]",
    "sqlite": "max(CASE WHEN place = 1 THEN id END)",
}
FAILURES = {vendor: _FAILURES.format(example=example) for vendor, example in _EXAMPLE.items()}


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """Tasks of one name that ended with one kind of error."""

    error_class: str
    name: str
    count: int
    first_seen: datetime
    last_seen: datetime
    example_id: UUID
    """The newest of them."""
    example_message: str


@dataclass(frozen=True, kw_only=True)
class Failures:
    """The groups, the largest first."""

    groups: list[FailureGroup]
    looked_at: int
    is_capped: bool
    """Whether there may be older ones that were not looked at."""


def failures(*, limit: int = 100, newest: int = NEWEST) -> Failures:
    """The newest failed tasks, grouped; up to `limit` groups, in one statement.

    `newest` is how many are looked at: what is asked for every few seconds should ask for few.
    """
    connection = project_connection()
    rows = fetch(connection, FAILURES[connection.vendor], (newest, limit, LONGEST_MESSAGE))
    looked_at = int(rows[0][-1]) if rows else 0
    return Failures(
        groups=[_group(*row[:-1]) for row in rows],
        looked_at=looked_at,
        is_capped=looked_at >= newest,
    )


def _group(
    error_class: str, name: str, count: int, first: Any, last: Any, example: Any, message: str
) -> FailureGroup:
    first_seen, last_seen = loaded(first), loaded(last)
    assert first_seen is not None
    assert last_seen is not None
    return FailureGroup(
        error_class=error_class,
        name=name,
        count=count,
        first_seen=first_seen,
        last_seen=last_seen,
        example_id=example if isinstance(example, UUID) else UUID(example),
        example_message=message,
    )
