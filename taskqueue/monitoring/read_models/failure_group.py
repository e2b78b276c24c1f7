"""Recently failed tasks, and tasks that wait for a retry, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from taskqueue.access.permissions import VIEW_LEASES
from taskqueue.core.states import TaskStatus
from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.sqlite.values import loaded
from taskqueue.engine.statement import Statement
from taskqueue.monitoring.read_models.base import Viewer, about
from taskqueue.monitoring.reading import read
from taskqueue.monitoring.searching.search_tokens import search_text

# The most failed tasks that are read.
NEWEST = 10_000
# An id before every task's.
EVER = datetime(1970, 1, 1, tzinfo=UTC)
# The most characters of an example.
LONGEST_MESSAGE = 1000

# Reads the newest failed tasks by the index of ended tasks, then one row for each group by its key.
# Tasks that failed at the same moment are ordered by the key.
_FAILURES = """
WITH newest AS MATERIALIZED (
    SELECT id, error_class, name, finished_at, step_id
    FROM taskqueue_task
    WHERE status = 'failed' AND finished_at IS NOT NULL AND finished_at > %(since)s
    ORDER BY finished_at DESC, id DESC
    LIMIT %(newest)s
), placed AS (
    SELECT
        error_class, name, finished_at, step_id,
        first_value(id) OVER (
            PARTITION BY error_class, name
            ORDER BY finished_at DESC, id DESC
        ) AS example_id
    FROM newest
), grouped AS (
    SELECT
        error_class, name, example_id, count(*) AS number, count(step_id) AS in_workflows,
        min(finished_at) AS first_seen, max(finished_at) AS last_seen,
        sum(count(*)) OVER () AS looked_at
    FROM placed
    GROUP BY error_class, name, example_id
    ORDER BY number DESC, last_seen DESC, error_class, name
    LIMIT %(limit)s
)
SELECT
    grouped.error_class, grouped.name, grouped.number, grouped.in_workflows, grouped.first_seen,
    grouped.last_seen, grouped.example_id,
    COALESCE((
        SELECT substr(task.error_message, 1, %(longest)s)
        FROM taskqueue_task AS task
        WHERE task.id = grouped.example_id
    ), ''),
    grouped.looked_at
FROM grouped
ORDER BY grouped.number DESC, grouped.last_seen DESC, grouped.error_class, grouped.name
"""


FAILURES = Statement(postgresql=_FAILURES, sqlite=_FAILURES)

# Reads the newest retrying tasks by the index of waiting tasks, then the last attempt of one task
# of each group by its key, because a retrying task has no error itself. SQLite needs the words of
# the partial index; PostgreSQL would take them for another condition.
_RETRYING = """
WITH newest AS MATERIALIZED (
    SELECT id, name, attempt, run_after
    FROM taskqueue_task
    WHERE status = 'retrying'{waiting}
    ORDER BY id DESC
    LIMIT %(newest)s
), placed AS (
    SELECT
        name, run_after,
        first_value(id) OVER by_name AS example_id,
        first_value(attempt) OVER by_name AS attempt
    FROM newest
    WINDOW by_name AS (PARTITION BY name ORDER BY id DESC)
), grouped AS (
    SELECT
        name, example_id, attempt, count(*) AS number, min(run_after) AS next_at,
        sum(count(*)) OVER () AS looked_at
    FROM placed
    GROUP BY name, example_id, attempt
    ORDER BY number DESC, name
    LIMIT %(limit)s
)
SELECT
    grouped.name, grouped.number, grouped.next_at, grouped.example_id,
    COALESCE(lease.error_class, ''), COALESCE(substr(lease.error_message, 1, %(longest)s), ''),
    grouped.looked_at
FROM grouped
LEFT JOIN taskqueue_lease AS lease
    ON lease.task_id = grouped.example_id AND lease.attempt = grouped.attempt
ORDER BY grouped.number DESC, grouped.name
"""
RETRYING = Statement(
    postgresql=_RETRYING.replace("{waiting}", ""),
    sqlite=_RETRYING.replace("{waiting}", " AND status IN ('blocked', 'retrying', 'scheduled')"),
)


FIND = "Finds them: the `q` of `tasks/`, and of an operation."


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """Tasks of one name that ended with one kind of error."""

    error_class: str = about("Empty: they failed without one.")
    name: str
    count: int
    in_workflows: int = about("How many of them belong to workflows, which are retried instead.")
    first_seen: datetime
    last_seen: datetime
    example_id: UUID = about("The newest of them.")
    example_message: str = about(f"Its error's message, up to {LONGEST_MESSAGE:,} characters.")
    q: str = about(FIND)


@dataclass(frozen=True, kw_only=True)
class RetryingGroup:
    """Tasks of one name that wait for their next attempt."""

    name: str
    count: int
    next_at: datetime = about("The time of the first retry.")
    example_id: UUID = about("The newest of them.")
    example_error: str | None = about(
        "The error class of its last attempt; null: you lack the permission to see attempts."
    )
    example_message: str | None
    q: str = about(FIND)


@dataclass(frozen=True, kw_only=True)
class Failures:
    """Groups of the newest failed tasks, the largest first."""

    groups: list[FailureGroup]
    looked_at: int = about(f"Failed tasks: up to {NEWEST:,}.")
    is_capped: bool = about("Whether there may be older ones that were not looked at.")


@dataclass(frozen=True, kw_only=True)
class Retrying:
    """Groups of the newest tasks that are retried, the largest first."""

    groups: list[RetryingGroup]
    looked_at: int
    is_capped: bool = about("Whether there may be older ones that were not looked at.")


def failures(*, limit: int = 100, newest: int = NEWEST, since: datetime | None = None) -> Failures:
    """Return the newest failed tasks in groups; up to `limit` groups, in one statement.

    `newest` is how many tasks are read: a caller that asks every few seconds should ask for few.
    Tasks that failed up to `since` are left out, also in the searches of the groups.
    """
    rows = read(FAILURES, since=since or EVER, newest=newest, limit=limit, longest=LONGEST_MESSAGE)
    looked_at = int(rows[0][-1]) if rows else 0
    return Failures(
        groups=[_failure_group(row, since) for row in rows],
        looked_at=looked_at,
        is_capped=looked_at >= newest,
    )


def retrying(viewer: Viewer, *, limit: int = 100) -> Retrying:
    """Return the newest retrying tasks in groups; up to `limit` groups, in one statement."""
    rows = read(RETRYING, newest=NEWEST + 1, limit=limit, longest=LONGEST_MESSAGE)
    looked_at = int(rows[0][-1]) if rows else 0
    sees_attempts = viewer.has_perm(VIEW_LEASES)
    return Retrying(
        groups=[_retrying_group(row, sees_attempts=sees_attempts) for row in rows],
        looked_at=min(looked_at, NEWEST),
        is_capped=looked_at > NEWEST,
    )


def _failure_group(row: Sequence[Any], since: datetime | None) -> FailureGroup:
    error_class, name, count, in_workflows, first, last, example, message, _ = row
    words = {"status": TaskStatus.FAILED.value, "class": error_class, "name": name}
    if since is not None:
        words["failed_after"] = since.isoformat()
    return FailureGroup(
        error_class=error_class, name=name, count=count, in_workflows=in_workflows,
        first_seen=_moment(first), last_seen=_moment(last), example_id=as_uuid(example),
        example_message=message, q=search_text(**words),
    )  # fmt: skip


def _retrying_group(row: Sequence[Any], *, sees_attempts: bool) -> RetryingGroup:
    name, count, next_at, example, error, message, _ = row
    return RetryingGroup(
        name=name, count=count, next_at=_moment(next_at), example_id=as_uuid(example),
        example_error=error if sees_attempts else None,
        example_message=message if sees_attempts else None,
        q=search_text(status=TaskStatus.RETRYING.value, name=name),
    )  # fmt: skip


def _moment(value: Any) -> datetime:
    moment = loaded(value)
    assert moment is not None
    return moment
