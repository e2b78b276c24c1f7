"""Promote due tasks, and find out in the same statement which other duties have work.

A look is a query of one duty, and is defined next to the code of that duty.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.dialect import dialect_for, select
from taskqueue.engine.statement import Fact, Moment, Statement

# On PostgreSQL the same statement has promoted all tasks that are due now, except locked ones.
NEXT_DUE = Moment(
    postgresql="""
        SELECT min(run_after)
        FROM taskqueue_task
        WHERE status IN ('retrying', 'scheduled') AND run_after > statement_timestamp()
    """,
    sqlite="""
        SELECT min(run_after)
        FROM taskqueue_task
        WHERE status IN ('retrying', 'scheduled')
    """,
)
# A loose scan of the claim's index: one probe for each queue, however many tasks are ready. Paused
# queues are left out.
READY_QUEUES = Statement(
    postgresql="""
        WITH RECURSIVE lane AS (
            (
                SELECT queue_name
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 0
                ORDER BY queue_name
                LIMIT 1
            )
            UNION ALL
            SELECT (
                SELECT task.queue_name
                FROM taskqueue_task AS task
                WHERE task.status = 'ready' AND task.route = 0
                    AND task.queue_name > lane.queue_name
                ORDER BY task.queue_name
                LIMIT 1
            )
            FROM lane
            WHERE lane.queue_name IS NOT NULL
        )
        SELECT queue_name
        FROM lane
        WHERE queue_name IS NOT NULL AND queue_name <> ALL (ARRAY(
            SELECT name
            FROM taskqueue_queue
            WHERE paused_at IS NOT NULL
                AND (paused_until IS NULL OR paused_until > clock_timestamp())
        )) AND NOT EXISTS (
            SELECT
            FROM taskqueue_pause
            WHERE name = '' AND (paused_until IS NULL OR paused_until > clock_timestamp())
        )
    """,
    sqlite="""
        WITH RECURSIVE lane (queue_name) AS (
            SELECT min(queue_name)
            FROM taskqueue_task
            WHERE status = 'ready' AND route = 0
            UNION ALL
            SELECT (
                SELECT min(queue_name)
                FROM taskqueue_task
                WHERE status = 'ready' AND route = 0
                    AND queue_name > lane.queue_name
            )
            FROM lane
            WHERE lane.queue_name IS NOT NULL
        )
        SELECT queue_name
        FROM lane
        WHERE queue_name IS NOT NULL AND queue_name NOT IN (
            SELECT name
            FROM taskqueue_queue
            WHERE paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > %(now)s)
        ) AND NOT EXISTS (
            SELECT 1
            FROM taskqueue_pause
            WHERE name = '' AND (paused_until IS NULL OR paused_until > %(now)s)
        )
    """,
)
HAS_READY = Fact(
    postgresql=f"EXISTS ({READY_QUEUES.postgresql})", sqlite=f"EXISTS ({READY_QUEUES.sqlite})"
)


def ready_queues(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the queues that have a ready task and are not paused; none if everything is paused."""
    return [row[0] for row in select(connection, READY_QUEUES)]


@dataclass(frozen=True)
class Forecast:
    """How many tasks were promoted, and the results of the looks."""

    promoted: int
    _seen: dict[Statement, Any]

    def until(self, moment: Moment) -> float | None:
        """Return the seconds from the look until that moment; None if no such moment is known."""
        seconds: float | None = self._seen[moment]
        return seconds

    def is_over(self, moment: Moment) -> bool:
        """Return whether that moment has come."""
        seconds = self.until(moment)
        return seconds is not None and seconds <= 0

    def holds(self, fact: Fact) -> bool:
        """Return whether the fact is true."""
        return bool(self._seen[fact])

    def number(self, fact: Fact) -> int:
        """Return the number that the query has returned."""
        return int(self._seen[fact])

    def calls_for(self, look: Statement) -> bool:
        """Return whether the moment has come, or the fact is true."""
        return self.is_over(look) if isinstance(look, Moment) else bool(self._seen[look])

    def text(self, fact: Fact) -> str:
        """Return the text that the query has returned; empty if it returned no row."""
        return str(self._seen[fact] or "")

    @property
    def has_ready(self) -> bool:
        """Return whether a task may be claimed.

        PostgreSQL's look does not see the promoted tasks.
        """
        return self.promoted > 0 or self.holds(HAS_READY)


def promote(
    connection: BaseDatabaseWrapper,
    looks: tuple[Statement, ...],
    *,
    left_out: Collection[Statement] = (),
    worker_id: int,
    limit: int,
) -> Forecast:
    """Make due tasks ready, up to the limit, and look for other work.

    The results of looks that are left out mean nothing.
    """
    promoted, *values = dialect_for(connection).promote(
        connection, looks, left_out=left_out, worker_id=worker_id, limit=limit
    )
    return Forecast(promoted, dict(zip(looks, values, strict=True)))
