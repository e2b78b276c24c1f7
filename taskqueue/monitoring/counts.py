"""How many tasks there are of each status, counted as far as it is cheap."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.formats import number_format

from taskqueue.core.states import TaskStatus
from taskqueue.monitoring.reading import read

CAP = 10_000
"""Beyond this nobody counts: an exact figure would read the whole table."""


@dataclass(frozen=True)
class Count:
    """A number, or the least that it is."""

    value: int
    is_capped: bool = False

    @classmethod
    def of(cls, found: int, *, cap: int) -> Count:
        """What a count says that stops one behind the cap."""
        return cls(min(found, cap), found > cap)

    def __str__(self) -> str:
        text = number_format(self.value, use_l10n=True, force_grouping=True)
        return f"{text}+" if self.is_capped else text


# Each part reads one index, up to the limit: its order keeps the planner from reading the table in
# its place. An ordinary task that runs is found by its lease, for no index holds it.
_WAITING = """
SELECT '{status}', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = '{status}'{{waiting}}
    ORDER BY id LIMIT %(limit)s
) AS counted
"""
_READY = """
SELECT 'ready', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = 'ready' AND {ordinary}
    ORDER BY queue_name LIMIT %(limit)s
) AS counted
"""
_APART = """
SELECT status, count(*) FROM (
    SELECT status FROM taskqueue_task
    WHERE {apart} AND status IN ('ready', 'running')
    ORDER BY pinned_to LIMIT %(limit)s
) AS counted
GROUP BY status
"""
_RUNNING = """
SELECT 'running', count(*) FROM (
    SELECT 1
    FROM (
        SELECT task_id FROM taskqueue_lease
        WHERE status = 'running'
        ORDER BY worker_id LIMIT %(limit)s
    ) AS held
    JOIN taskqueue_task AS task ON task.id = held.task_id
    WHERE NOT task.claimed_apart
) AS counted
"""
_ENDED = """
SELECT '{status}', count(*) FROM (
    SELECT 1 FROM taskqueue_task
    WHERE status = '{status}' AND finished_at IS NOT NULL
    ORDER BY finished_at DESC LIMIT %(limit)s
) AS counted
"""
_STATUS_COUNTS = "UNION ALL".join(
    [
        *(_WAITING.format(status=status) for status in ("blocked", "scheduled", "retrying")),
        _READY,
        _APART,
        _RUNNING,
        *(_ENDED.format(status=status) for status in ("succeeded", "failed", "cancelled")),
    ]
)

# The conditions of the indexes. SQLite wants them word by word, and Django 6.1 writes `= 0` where
# earlier versions write NOT. PostgreSQL sees what follows from what; told twice, it would expect
# far too few rows, and sort what another index gives.
_CONDITIONS = {
    "postgresql": {"ordinary": "NOT claimed_apart", "apart": "claimed_apart", "waiting": ""},
    "sqlite": {
        "ordinary": "NOT claimed_apart AND claimed_apart = 0",
        "apart": "claimed_apart AND claimed_apart = 1",
        "waiting": " AND status IN ('blocked', 'retrying', 'scheduled')",
    },
}
STATUS_COUNTS = {
    vendor: _STATUS_COUNTS.format(**conditions) for vendor, conditions in _CONDITIONS.items()
}


def status_counts(*, cap: int = CAP) -> dict[str, Count]:
    """How many tasks are of each status, up to `cap`; in one statement."""
    found = dict.fromkeys((status.value for status in TaskStatus), 0)
    for status, number in read(STATUS_COUNTS, limit=cap + 1):
        found[status] += number
    return {status: Count.of(number, cap=cap) for status, number in found.items()}
