"""Tasks of steps: insert those of new workflows, send members of maps, and find or cancel them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.states import TaskStatus
from taskqueue.core.uuid7 import uuid7_hexes
from taskqueue.declarations.workflows.graph import Arguments
from taskqueue.engine.dialect import as_uuid, dialect_for, select
from taskqueue.engine.ends import cancel_waiting
from taskqueue.engine.rows import StepTasks
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.statement import Statement, text_of
from taskqueue.engine.workflows.requests import (
    has_parts,
    limited,
    spec_of_members,
    step_spec,
)
from taskqueue.models import Step as StepRow
from taskqueue.models import StepCalls, Task, Workflow

# Calls of a map that are stored in one row.
CHUNK = 500
# Unlike calls that are stored in one row; they may be whole workflows.
CHUNK_OF_PARTS = 10
# The most tasks that one statement changes, and that are built at a time for an insert.
MOST_INSERTED, BATCH = 2000, 500
# The place before all members of a step.
MOST_FOUND = 2**31 - 1
# The calls of maps that are sent as soon as the maps are inserted, by the ids of their steps.
Unsent = dict[int, Sequence[Arguments]]
NO_CALLS: Unsent = {}
# The place of the only task of a step.
FIRST = 0
# The partition and the limits of a task that has none.
NOWHERE = None, None
# One row per chunk: in an array the text of the calls would be escaped once more.
KEEP_CALLS = Statement.of("""
    INSERT INTO taskqueue_stepcalls (step_id, lease_id, first_place, calls)
    VALUES (%(step)s, 0, %(first)s, {json calls})
""")
# In the order of the members' key, each with its task found by its key: joined in the other
# direction, each task of that status would be compared with each member.
FIND_TASKS = Statement(
    postgresql="""
        SELECT task.id, member.step_id, member.place
        FROM taskqueue_member AS member
        CROSS JOIN LATERAL (
            SELECT id
            FROM taskqueue_task
            WHERE id = member.task_id AND status = ANY (%(statuses)s::text[])
            OFFSET 0
        ) AS task
        WHERE member.step_id = ANY (%(steps)s::bigint[]) AND member.place >= %(start)s
        ORDER BY member.step_id, member.place
        LIMIT %(limit)s
    """,
    sqlite="""
        SELECT task.id, member.step_id, member.place
        FROM taskqueue_member AS member
        CROSS JOIN taskqueue_task AS task ON task.id = member.task_id
        WHERE member.step_id IN (SELECT value FROM json_each(%(steps)s))
            AND member.place >= %(start)s
            AND task.status IN (SELECT value FROM json_each(%(statuses)s))
        ORDER BY member.step_id, member.place
        LIMIT %(limit)s
    """,
)
_COUNT_BLOCKED = """
SELECT count(*)
FROM taskqueue_member AS member
{task}
WHERE member.step_id = %(step)s AND task.status = 'blocked'
"""
COUNT_BLOCKED = Statement(
    postgresql=_COUNT_BLOCKED.format(
        task="""CROSS JOIN LATERAL (
    SELECT status FROM taskqueue_task WHERE id = member.task_id OFFSET 0
) AS task"""
    ),
    sqlite=_COUNT_BLOCKED.format(
        task="CROSS JOIN taskqueue_task AS task ON task.id = member.task_id"
    ),
)
BLOCKED_ONLY = frozenset({TaskStatus.BLOCKED})
BLOCKED: dict[str, Any] = {
    "status": TaskStatus.BLOCKED.value, "ready_at": None, "deadline_at": None, "expires_at": None,
}  # fmt: skip


def insert_blocked(
    connection: BaseDatabaseWrapper,
    calls: Iterable[tuple[int, EnqueueSpec, Arguments]],
    *,
    now: datetime,
) -> None:
    """Insert the tasks of single steps; those with the same options in one statement."""
    alike: dict[EnqueueSpec, list[tuple[int, Arguments]]] = {}
    for step_id, spec, arguments in calls:
        alike.setdefault(spec, []).append((step_id, arguments))
    for spec, own in alike.items():
        tasks = _as_tasks(spec, [(step_id, FIRST, arguments) for step_id, arguments in own])
        dialect_for(connection).insert_step_tasks(
            connection, step_spec(spec), [tasks], now=now, changes=BLOCKED
        )


def keep_calls(
    connection: BaseDatabaseWrapper,
    step_id: int,
    calls: Sequence[Sequence[Any]],
    *,
    chunk: int,
) -> None:
    """Store the calls of a map, `chunk` calls in a row, to be sent later."""
    chunks = (
        (start, [list(call) for call in calls[start : start + chunk]])
        for start in range(0, len(calls), chunk)
    )
    rows: list[dict[str, Any]] = [
        {"step": step_id, "first": place, "calls": json.dumps(some)} for place, some in chunks
    ]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(text_of(connection, KEEP_CALLS), rows)


def chunk_of(request: dict[str, Any]) -> int:
    """Return how many calls of a map are stored in one row."""
    return CHUNK_OF_PARTS if has_parts(request) else CHUNK


def send_members(
    connection: BaseDatabaseWrapper,
    step: StepRow,
    number: int,
    *,
    now: datetime,
    deadline_at: datetime | None,
    send_child: Callable[[int, dict[str, Any]], None],
) -> int:
    """Insert the next `number` members of a map. Return how many there were.

    `send_child(place, graph)` inserts a member that is a workflow.
    """
    kept = StepCalls.objects.using(connection.alias).filter(step_id=step.id, lease_id=0)
    chunk = chunk_of(step.request)
    found: list[tuple[int, list[Any]]] = []
    rows = kept.filter(first_place__gt=step.released - chunk).order_by("first_place")
    for row in rows[: number // chunk + 2]:
        start = max(0, step.released - row.first_place)
        found += enumerate(row.calls[start:], row.first_place + start)
    alike: dict[int | None, list[tuple[int, int, Arguments]]] = {}
    for place, call in found[:number]:
        match call:
            case [graph]:
                send_child(place, graph)
            case [args, kwargs, *own]:
                members = alike.setdefault(own[0] if own else None, [])
                members.append((step.id, place, (args, kwargs)))
    for number_of_spec, members in alike.items():
        spec = spec_of_members(step.request, number_of_spec)
        insert_members(connection, spec, members, now=now, deadline_at=deadline_at)
    sent = step.released + len(found[:number])
    if not has_parts(step.request):  # Others may be needed to send all members anew.
        (kept if sent == step.members else kept.filter(first_place__lte=sent - chunk)).delete()
    return sent - step.released


def specs_of_blocked(
    connection: BaseDatabaseWrapper, step: StepRow, blocked: QuerySet[Task]
) -> list[tuple[EnqueueSpec, QuerySet[Task]]]:
    """Return the blocked tasks of a map of unlike calls, grouped by their spec."""
    kept = StepCalls.objects.using(connection.alias).filter(step_id=step.id, lease_id=0)
    places = {place or 0: id for place, id in blocked.values_list("place", "id")}
    alike: dict[int, list[Any]] = {}
    for row in kept.filter(first_place__in={place - place % CHUNK_OF_PARTS for place in places}):
        for place, call in enumerate(row.calls, row.first_place):
            if place in places:
                alike.setdefault(call[2], []).append(places[place])
    return [
        (spec_of_members(step.request, number), blocked.filter(id__in=ids))
        for number, ids in alike.items()
    ]


def insert_members(
    connection: BaseDatabaseWrapper,
    spec: EnqueueSpec,
    members: Iterable[tuple[int, int, Arguments]],
    *,
    now: datetime,
    deadline_at: datetime | None,
) -> None:
    """Insert members of steps, given as (step id, place, arguments), that have the same options."""
    own = step_spec(spec)
    times = limited(own, now=now, deadline_at=deadline_at)
    batches = _in_batches(spec, iter(members))
    dialect_for(connection).insert_step_tasks(connection, own, batches, now=now, changes=times)


def _in_batches(
    spec: EnqueueSpec, members: Iterator[tuple[int, int, Arguments]]
) -> Iterator[StepTasks]:
    """Yield the tasks of members, a batch at a time.

    Batches keep few objects alive: with all of them at once, the garbage collector scanned the
    whole process.
    """
    while some := list(islice(members, BATCH)):
        yield _as_tasks(spec, some)


def _as_tasks(spec: EnqueueSpec, members: Sequence[tuple[int, int, Arguments]]) -> StepTasks:
    """Return the tasks of members, of which there is at least one."""
    step_ids, places, calls = zip(*members, strict=True)
    args, kwargs = zip(*calls, strict=True)
    partitions: Sequence[str | None] = [None] * len(calls)
    limits = partitions
    if spec.limit_plan:
        partitions, limits = zip(*(spec.place(*call) or NOWHERE for call in calls), strict=True)
    ids = uuid7_hexes(len(calls))
    return StepTasks(ids, args, kwargs, step_ids, places, partitions, limits)


def cancel_blocked(
    connection: BaseDatabaseWrapper, step_ids: Sequence[int], *, limit: int
) -> tuple[int, int | None]:
    """Cancel up to `limit` unreleased tasks of steps, in the order of the steps.

    Return how many were cancelled, and the step of the last one. Like a release, this waits for a
    task that another session has locked: that session never waits for a workflow, and a task that
    was skipped would stay blocked for good.
    """
    found = find_tasks(connection, step_ids, BLOCKED_ONLY, limit=limit)
    for blocked in _batches(connection, found, BLOCKED_ONLY):
        tasks = list(blocked.order_by("id").select_for_update())
        cancel_waiting(connection, tasks, reason="Its step was not released.")
    return len(found), found[-1][1] if found else None


def tasks_of(
    connection: BaseDatabaseWrapper,
    step_ids: Sequence[int],
    statuses: Collection[TaskStatus],
    *,
    limit: int = MOST_FOUND,
) -> Iterator[QuerySet[Task]]:
    """Yield the tasks of steps in one of these statuses, by their places, a batch at a time."""
    found = find_tasks(connection, step_ids, statuses, limit=limit)
    yield from _batches(connection, found, statuses)


def _batches(
    connection: BaseDatabaseWrapper,
    found: Sequence[tuple[Any, int, int]],
    statuses: Collection[TaskStatus],
) -> Iterator[QuerySet[Task]]:
    rows: QuerySet[Task] = Task.objects.using(connection.alias).filter(status__in=sorted(statuses))
    ids = [as_uuid(id) for id, _, _ in found]
    for first in range(0, len(ids), MOST_INSERTED):
        yield rows.filter(id__in=ids[first : first + MOST_INSERTED])


def find_tasks(
    connection: BaseDatabaseWrapper,
    step_ids: Sequence[int],
    statuses: Collection[TaskStatus],
    *,
    start: int = FIRST,
    limit: int = MOST_FOUND,
) -> list[tuple[Any, int, int]]:
    """Return the tasks of steps in one of these statuses with their steps and places, in order."""
    return select(
        connection, FIND_TASKS,
        steps=list(step_ids), statuses=sorted(statuses), start=start, limit=limit,
    )  # fmt: skip


def count_blocked(connection: BaseDatabaseWrapper, step_id: int) -> int:
    """Return how many tasks of a step wait to be sent again."""
    ((number,),) = select(connection, COUNT_BLOCKED, step=step_id)
    return int(number)


def has_limits(workflow: Workflow, step: StepRow) -> bool:
    """Return whether the release of a single task must set times or limits."""
    return workflow.deadline_at is not None or "spec" in step.request
