"""Workflows at a glance: how many run, how many failed recently, and which stand still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.statement import Statement
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.reading import read

# The most workflows of each status that are read: the oldest running ones, the newest others.
MOST_LOOKED_AT = 1_000
MOST_SHOWN = 3
HOUR, DAY = timedelta(hours=1).total_seconds(), timedelta(days=1).total_seconds()
# After this time without any end or start of a step, a workflow is reported.
STILL = timedelta(minutes=10).total_seconds()

# Each part reads one index, up to the limit. Children are left out afterwards.
_PART = """
SELECT * FROM (
    SELECT
        status, id, name, trouble, parent_step_id, paused_at,
        {{since moved_at}} AS still, {{since finished_at}} AS ended
    FROM taskqueue_workflow
    WHERE status = '{status}'
    ORDER BY id {order}
    LIMIT %(limit)s
) AS {status}
"""
LOOKED_AT = Statement.of(
    " UNION ALL ".join(
        _PART.format(status=status.value, order=order)
        for status, order in (
            (WorkflowStatus.RUNNING, ""),
            (WorkflowStatus.STOPPING, ""),
            (WorkflowStatus.COMPENSATING, ""),
            (WorkflowStatus.FAILED, "DESC"),
        )
    )
)


@dataclass(frozen=True, kw_only=True)
class StillWorkflow:
    """An unfinished workflow that made no progress for a while, or cannot be advanced."""

    id: UUID
    name: str
    seconds: float
    trouble: str


@dataclass(frozen=True, kw_only=True)
class WorkflowOverview:
    """Counts of workflows that are not children, and those that have stood still for longest."""

    running: Count
    failed_in_hour: Count
    failed_in_day: Count
    still: list[StillWorkflow]


def workflow_overview() -> WorkflowOverview:
    """Return the state of workflows, by one statement."""
    open_ones: list[StillWorkflow] = []
    paused = 0
    failed: list[float] = []
    looked_at: Counter[str] = Counter()
    for status, id, name, trouble, parent, paused_at, still, ended in read(
        LOOKED_AT, limit=MOST_LOOKED_AT
    ):
        looked_at[status] += 1
        if parent is not None:
            continue
        if status == WorkflowStatus.FAILED:
            failed.append(ended)
        elif paused_at is not None:
            paused += 1
        else:
            row = StillWorkflow(id=as_uuid(id), name=name, seconds=still, trouble=trouble)
            open_ones.append(row)
    is_full = {status: number == MOST_LOOKED_AT for status, number in looked_at.items()}
    may_be_more = is_full.pop(WorkflowStatus.FAILED, False)
    notable = [row for row in open_ones if row.trouble or row.seconds >= STILL]
    notable.sort(key=lambda row: (not row.trouble, -row.seconds))
    return WorkflowOverview(
        running=Count(len(open_ones) + paused, any(is_full.values())),
        failed_in_hour=_within(failed, HOUR, may_be_more=may_be_more),
        failed_in_day=_within(failed, DAY, may_be_more=may_be_more),
        still=notable[:MOST_SHOWN],
    )


def _within(ages: Sequence[float], longest: float, *, may_be_more: bool) -> Count:
    """Return how many are no older than that; there may be more if all rows that were read are."""
    number = sum(age <= longest for age in ages)
    return Count(number, may_be_more and number == len(ages))
