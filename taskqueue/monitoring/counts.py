"""Counts of tasks by status, up to a cap."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.formats import number_format

from taskqueue.core.states import TaskStatus
from taskqueue.engine.statement import Statement
from taskqueue.monitoring.reading import read

# The highest count, because an exact count would read the whole table.
CAP = 10_000


@dataclass(frozen=True)
class Count:
    """A count, perhaps capped."""

    value: int
    is_capped: bool = False

    @classmethod
    def of(cls, found: int, *, cap: int) -> Count:
        """Return the count for a number that was counted up to one above the cap."""
        return cls(min(found, cap), found > cap)

    def __str__(self) -> str:
        text = number_format(self.value, use_l10n=True, force_grouping=True)
        return f"{text}+" if self.is_capped else text


# Each part reads one index, up to the limit: its order keeps the planner from reading the table
# instead. No index contains running tasks, so they are found by their leases, except those of
# several workers. SQLite needs the condition of the index of waiting tasks word by word. PostgreSQL
# derives it; if it were repeated, PostgreSQL would expect far too few rows, and sort rows of
# another index.
_STATUS_COUNTS = """
SELECT 'blocked', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'blocked'{waiting}
    ORDER BY id LIMIT %(limit)s
) AS counted
UNION ALL
SELECT 'scheduled', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'scheduled'{waiting}
    ORDER BY id LIMIT %(limit)s
) AS counted
UNION ALL
SELECT 'retrying', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'retrying'{waiting}
    ORDER BY id LIMIT %(limit)s
) AS counted
UNION ALL
SELECT 'ready', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'ready' AND route = 0
    ORDER BY queue_name LIMIT %(limit)s
) AS counted
UNION ALL
SELECT 'ready', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'ready' AND route = 2
    ORDER BY partition LIMIT %(limit)s
) AS counted
UNION ALL
SELECT status, count(*) FROM (
    SELECT status FROM taskqueue_task
    WHERE route = 1 AND status IN ('ready', 'running')
    ORDER BY pinned_to LIMIT %(limit)s
) AS counted
GROUP BY status
UNION ALL
SELECT 'running', count(*) FROM (
    SELECT 1
    FROM (
        SELECT task_id FROM taskqueue_lease
        WHERE status = 'running'
        ORDER BY worker_id LIMIT %(limit)s
    ) AS held
    JOIN taskqueue_task AS task ON task.id = held.task_id
    WHERE task.route <> 1
) AS counted
UNION ALL
SELECT 'succeeded', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'succeeded' AND finished_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT %(limit)s
) AS counted
UNION ALL
SELECT 'failed', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'failed' AND finished_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT %(limit)s
) AS counted
UNION ALL
SELECT 'cancelled', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'cancelled' AND finished_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT %(limit)s
) AS counted
"""
STATUS_COUNTS = Statement(
    postgresql=_STATUS_COUNTS.replace("{waiting}", ""),
    sqlite=_STATUS_COUNTS.replace(
        "{waiting}", " AND status IN ('blocked', 'retrying', 'scheduled')"
    ),
)


def status_counts(*, cap: int = CAP) -> dict[str, Count]:
    """Return the number of tasks of each status, up to `cap`, in one statement."""
    found = dict.fromkeys((status.value for status in TaskStatus), 0)
    for status, number in read(STATUS_COUNTS, limit=cap + 1):
        found[status] += number
    return {status: Count.of(number, cap=cap) for status, number in found.items()}
