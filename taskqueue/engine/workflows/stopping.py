"""Stop workflows: cancel waiting tasks, and ask running ones to stop.

The caller holds the workflow's lock. Tasks, leases and children that another session has locked are
left to the next turn. So this never waits for such a session, and sessions with these locks never
wait for a workflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet

from taskqueue.core.workflow_states import FINAL_WORKFLOWS, StepKind, StepStatus, WorkflowStatus
from taskqueue.engine.control.audit import Person
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.tasks import UNFINISHED, cancel_each
from taskqueue.engine.dialect import as_uuid, select
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows.tasks import cancel_blocked, count_blocked
from taskqueue.models import Step, Workflow

HAVE_CHILDREN = frozenset({StepKind.WORKFLOW, StepKind.MAP})
# The most tasks and children that one transaction stops, and the most members that it looks at:
# while a stop waits for bodies that do not end, each transaction looks at the next members.
MOST_STOPPED, MOST_LOOKED = 500, 10_000
# The step and the place after which the next transaction continues, and when it does.
STOPPED_TO = ("stopped_step_id", "stopped_place", "stops_again_at")
# The time until the next look if something was stopped or was locked elsewhere. If nothing was left
# to stop, the wait is an eighth of the time since the request, because bodies may take long to end.
# Every end is noted, and advances the workflow in any case.
PAUSE, SHARE, LONGEST_PAUSE = timedelta(seconds=0.25), 8, timedelta(seconds=30)
BEFORE_ALL = -1
FROM_THE_START = (0, BEFORE_ALL)

# The next members in the order of their key, up to a limit, each with its task found by its key. So
# whatever the statistics say of a table that has just been filled, nothing is sorted and no other
# task is read. A task for several workers may be running without a lease, until its next worker
# claims it. The last row tells how many members were read, and up to which place.
_TO_STOP = """
WITH member AS MATERIALIZED (
    SELECT step_id, place, task_id
    FROM taskqueue_member
    WHERE step_id {steps} AND place > %(after)s
    ORDER BY step_id, place
    LIMIT %(looked)s
)
SELECT id, step_id, place, 0
FROM (
    SELECT task.id, member.step_id, member.place
    FROM member
    {task}
    WHERE task.status IN ('blocked', 'ready', 'retrying', 'scheduled')
        OR task.status = 'running' AND (
            task.open_slots > 0 AND (task.workers > 1 OR task.broadcast)
            OR EXISTS (
                SELECT 1
                FROM taskqueue_lease AS lease
                WHERE lease.task_id = task.id
                    AND lease.status = 'running' AND lease.stop_requested_at IS NULL
            )
        )
    ORDER BY member.step_id, member.place
    LIMIT %(limit)s
) AS found
UNION ALL
SELECT NULL, step_id, place, (SELECT count(*) FROM member)
FROM (
    SELECT step_id, place
    FROM member
    ORDER BY step_id DESC, place DESC
    LIMIT 1
) AS last
"""
TO_STOP = Statement(
    postgresql=_TO_STOP.format(
        task="""CROSS JOIN LATERAL (
        SELECT id, status, open_slots, workers, broadcast
        FROM taskqueue_task
        WHERE id = member.task_id
        OFFSET 0
    ) AS task""",
        steps="= ANY (%(steps)s::bigint[])",
    ),
    sqlite=_TO_STOP.format(
        task="CROSS JOIN taskqueue_task AS task ON task.id = member.task_id",
        steps="IN (SELECT value FROM json_each(%(steps)s))",
    ),
)


class Stopped(NamedTuple):
    """The tasks of a workflow that one transaction has stopped."""

    number: int
    # Whether other sessions had locked some tasks or children, which are left to the next
    # transaction.
    has_missed: bool


def request_stop(
    connection: BaseDatabaseWrapper,
    workflow: Workflow,
    *,
    now: datetime,
    reason: str,
    by: str = "",
    error: dict[str, Any] | None = None,
) -> None:
    """Let no more steps of a locked workflow be released. With `error` it ends as failed."""
    workflow.status = WorkflowStatus.STOPPING
    workflow.stop_requested_at = workflow.stop_requested_at or now
    workflow.stop_requested_by, workflow.stop_reason = by, reason
    workflow.error = workflow.error or error
    workflow.stopped_step_id, workflow.stopped_place = FROM_THE_START
    workflow.stops_again_at = None
    workflow.save(
        using=connection.alias,
        update_fields=[
            "status", "stop_requested_at", "stop_requested_by", "stop_reason", "error", *STOPPED_TO,
        ],
    )  # fmt: skip


def cancel_steps(
    connection: BaseDatabaseWrapper, steps: Sequence[Step], *, most: int
) -> tuple[int, list[Step]]:
    """Cancel up to `most` blocked tasks of steps that will not be released.

    Return how many were cancelled, and the steps that may have more. The stored calls and children
    of maps are kept, so that a retry can send them.
    """
    has_tasks = [
        step
        for step in steps
        if step.kind == StepKind.TASK
        or (step.kind == StepKind.MAP and (step.released or step.reopen_from is not None))
    ]
    number, last = 0, None
    if has_tasks and most > 0:
        ids = [step.id for step in has_tasks]
        number, last = cancel_blocked(connection, ids, limit=most)
    left = has_tasks
    if number < most:
        left = []
    elif last is not None:  # Tasks were cancelled in the order of their steps.
        left = [step for step in has_tasks if step.id >= last]
    done = {step.id for step in steps} - {step.id for step in left}
    held_children(connection, sorted(done)).update(finished_at=F("moved_at"))
    return number, left


def held_children(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> QuerySet[Workflow]:
    """Return the children of maps that a retry will run again, and that have not been sent yet."""
    children = Workflow.objects.using(connection.alias).filter(
        parent_step_id__in=step_ids, parent_place__isnull=False,
        status__in=sorted(FINAL_WORKFLOWS), finished_at=None,
    )  # fmt: skip
    return children.order_by("parent_step_id", "parent_place")


def count_held(connection: BaseDatabaseWrapper, step_id: int) -> int:
    """Return how many members of a map wait to be sent again."""
    return count_blocked(connection, step_id) + held_children(connection, [step_id]).count()


def stop_some(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> Stopped:
    """Stop waiting and running tasks of a locked workflow, up to the bound of a transaction."""
    rows = Step.objects.using(connection.alias).filter(workflow_id=workflow.id)
    running = rows.filter(status=StepStatus.RUNNING).order_by("id")
    kinds = dict(running.values_list("id", "kind"))
    if not kinds:
        return Stopped(0, has_missed=False)
    ids = _to_stop(connection, workflow, list(kinds))
    has_more = (workflow.stopped_step_id, workflow.stopped_place) != FROM_THE_START
    stopped: Mapping[UUID, str] = {}
    if ids:
        person = Person(workflow.stop_requested_by, workflow.stop_reason)
        selection = Selection(
            connection=connection, ids=ids, statuses=UNFINISHED, person=person, is_bulk=True
        )
        stopped = cancel_each(selection, ended_by="")
    found, has_missed = _stop_children(connection, workflow, kinds, now=now)
    has_missed = has_missed or len(stopped) < len(ids)
    has_more = has_more or found == MOST_STOPPED
    waited = now - (workflow.stop_requested_at or now)
    pause = PAUSE if ids or found or has_missed else max(PAUSE, waited / SHARE)
    workflow.stops_again_at = None if has_more else now + min(pause, LONGEST_PAUSE)
    workflow.save(using=connection.alias, update_fields=STOPPED_TO)
    return Stopped(len(ids), has_missed=has_missed)


def _stop_children(
    connection: BaseDatabaseWrapper, workflow: Workflow, kinds: Mapping[int, str], *, now: datetime
) -> tuple[int, bool]:
    """Stop children of running steps.

    Return how many, and whether others had locked some of them.
    """
    above = [id for id, kind in kinds.items() if kind in HAVE_CHILDREN]
    if not above:
        return 0, False
    children = Workflow.objects.using(connection.alias).filter(
        parent_step_id__in=above, status=WorkflowStatus.RUNNING
    )
    # Unordered: any children will do. Locked ones are left to the next transaction.
    found = list(children.select_for_update(skip_locked=True)[:MOST_STOPPED])
    for child in found:
        reason, by = workflow.stop_reason, workflow.stop_requested_by
        request_stop(connection, child, now=now, reason=reason, by=by)
    return len(found), len(found) < MOST_STOPPED and children.exists()


def _to_stop(
    connection: BaseDatabaseWrapper, workflow: Workflow, step_ids: Sequence[int]
) -> list[UUID]:
    """Return tasks of these steps that wait, or that run and were not asked to stop yet.

    The search continues after the last member of the transaction before, and starts again once it
    has reached the end.
    """
    step_id, place = workflow.stopped_step_id, workflow.stopped_place
    turns = [([id for id in step_ids if id > step_id], BEFORE_ALL)]
    if step_id in step_ids:
        turns.insert(0, ([step_id], place))
    found: list[UUID] = []
    looked = 0
    last = FROM_THE_START
    for ids, after in turns:
        limit, most = MOST_STOPPED - len(found), MOST_LOOKED - looked
        if not ids or limit <= 0 or most <= 0:
            continue
        rows = select(connection, TO_STOP, steps=ids, after=after, limit=limit, looked=most)
        tasks = [row for row in rows if row[0] is not None]
        found += [as_uuid(task_id) for task_id, *_ in tasks]
        for _, *position, number in [row for row in rows if row[0] is None]:
            looked += number
            last = (position[0], position[1])
        if len(tasks) == limit:
            last = tasks[-1][1:3]
    if len(found) < MOST_STOPPED and looked < MOST_LOOKED:
        last = FROM_THE_START
    workflow.stopped_step_id, workflow.stopped_place = last
    return found
