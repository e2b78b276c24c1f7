"""Tasks of steps: inserting those of new workflows, sending members of maps, releasing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import TaskStatus
from taskqueue.core.uuid7 import uuid7_hexes
from taskqueue.declarations.workflows.graph import Arguments
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.rows import StepTask
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.workflows.requests import limited, step_spec
from taskqueue.models import Member, StepCalls, Task, Workflow
from taskqueue.models import Step as StepRow

# Calls of a map in one row.
CHUNK = 500
# The single task of a step.
FIRST = 0
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
        ids = uuid7_hexes(len(own))
        tasks = [
            StepTask(id, *arguments, step_id, FIRST)
            for id, (step_id, arguments) in zip(ids, own, strict=True)
        ]
        dialect_for(connection).insert_step_tasks(
            connection, step_spec(spec), tasks, now=now, changes=BLOCKED
        )


def keep_calls(
    connection: BaseDatabaseWrapper, step_id: int, calls: Sequence[Arguments], *, first: int = 0
) -> None:
    """Store the calls of a map, to be sent by and by."""
    StepCalls.objects.using(connection.alias).bulk_create(
        StepCalls(
            step_id=step_id,
            first_place=first + start,
            calls=[list(call) for call in calls[start : start + CHUNK]],
        )
        for start in range(0, len(calls), CHUNK)
    )


def send_members(
    connection: BaseDatabaseWrapper,
    step: StepRow,
    number: int,
    *,
    now: datetime,
    deadline_at: datetime | None,
) -> int:
    """Insert the next members of a map; how many there were."""
    kept = StepCalls.objects.using(connection.alias).filter(step_id=step.id)
    spec = step_spec(EnqueueSpec.from_json(step.request["spec"]))
    places: list[int] = []
    calls: list[Arguments] = []
    rows = kept.filter(first_place__gt=step.released - CHUNK).order_by("first_place")
    for row in rows[: number // CHUNK + 2]:
        start = max(0, step.released - row.first_place)
        own = row.calls[start : start + number - len(calls)]
        calls += [(args, kwargs) for args, kwargs in own]
        places += range(row.first_place + start, row.first_place + start + len(own))
    if not calls:
        return 0
    tasks = [
        StepTask(id, *call, step.id, place)
        for id, call, place in zip(uuid7_hexes(len(calls)), calls, places, strict=True)
    ]
    times = limited(spec, now=now, deadline_at=deadline_at)
    dialect = dialect_for(connection)
    dialect.insert_step_tasks(connection, spec, tasks, now=now, changes=times)
    sent = places[-1] + 1
    (kept if sent == step.members else kept.filter(first_place__lte=sent - CHUNK)).delete()
    return len(tasks)


def drop_calls(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> None:
    """Delete the calls of maps that are not to be sent any more."""
    StepCalls.objects.using(connection.alias).filter(step_id__in=step_ids).delete()


def tasks_of(connection: BaseDatabaseWrapper, step_ids: Sequence[int]) -> Any:
    """Return the tasks of steps."""
    members = Member.objects.using(connection.alias).filter(step_id__in=step_ids)
    return Task.objects.using(connection.alias).filter(id__in=members.values("task_id"))


def has_limits(workflow: Workflow, step: StepRow) -> bool:
    """Return whether the release of a single task sets a time or a limit."""
    return workflow.deadline_at is not None or "spec" in step.request
