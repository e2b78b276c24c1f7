"""Store the calls of a fan-out with the lease of their attempt; they run if it succeeds.

The body's process writes them, in chunks; once its lease has ended, nothing more is written. The
calls of a lost or failed attempt are never read. The next attempt deletes them, or the end of the
workflow does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import LeaseStatus
from taskqueue.core.workflow_states import StepKind
from taskqueue.declarations.workflows.graph import CompiledCall, Graph, Step
from taskqueue.declarations.workflows.signing import FanOut
from taskqueue.engine.dialect import execute
from taskqueue.engine.statement import Statement
from taskqueue.engine.workflows.requests import entries_of, request_of
from taskqueue.engine.workflows.tasks import chunk_of
from taskqueue.exceptions import InvalidWorkflow, LeaseEnded
from taskqueue.models import Lease, StepCalls, Task

# The place of the header, which describes the fan-out, before its calls.
HEADER = -1
# Up to this many calls are stored in the header: most fan-outs are small.
FEW = 100
# The name of a canvas that becomes a workflow of its own.
NAME = "fan_out"

KEEP = Statement.of("""
    INSERT INTO taskqueue_stepcalls (step_id, lease_id, first_place, calls)
    SELECT task.step_id, lease.id, %(first)s, {json calls}
    FROM taskqueue_lease AS lease
    JOIN taskqueue_task AS task ON task.id = lease.task_id
    WHERE lease.id = %(lease)s AND lease.status = 'running'
""")


DROP_UNUSED = Statement(
    postgresql="""
        DELETE FROM taskqueue_stepcalls AS kept
        USING taskqueue_step AS step
        WHERE step.workflow_id = ANY (%(workflows)s::uuid[])
            AND kept.step_id = ANY (ARRAY[step.id]) AND kept.lease_id > 0
    """,
    sqlite="""
        DELETE FROM taskqueue_stepcalls
        WHERE lease_id > 0 AND step_id IN (
            SELECT id
            FROM taskqueue_step
            WHERE workflow_id IN (SELECT value FROM json_each(%(workflows)s))
        )
    """,
)


def keep_fan_out(
    connection: BaseDatabaseWrapper, fan_out: FanOut, *, lease_id: int, task_id: str
) -> None:
    """Write the calls that a body has returned.

    Raises `InvalidWorkflow` if they cannot become a step, and `LeaseEnded` if the lease has ended.
    """
    rows = Task.objects.using(connection.alias).filter(id=task_id)
    task = rows.only("name", "attempt", "step_id", "workers", "broadcast").get()
    _check(task)
    header, calls = described(fan_out.build())
    if header["kind"] == StepKind.MAP and len(calls) <= FEW:
        header, calls = {**header, "calls": calls}, ()
    assert task.step_id is not None
    if task.attempt > 1:
        _drop_earlier(connection, task.id, task.step_id)
    chunk = chunk_of(header["request"])
    for first in range(0, len(calls), chunk):
        _keep(connection, lease_id, first, calls[first : first + chunk])
    _keep(connection, lease_id, HEADER, header)


def described(graph: Graph) -> tuple[dict[str, Any], Sequence[Sequence[Any]]]:
    """Return the description of the step of a fan-out, and the calls of its members.

    A group of calls is a map if all call one definition, or if the group has limits; any other
    canvas becomes a workflow of its own.
    """
    (step, *others) = graph.steps
    if step.kind is StepKind.MAP and step.source is None and not (others or graph.callbacks):
        header = {
            "kind": step.kind.value,
            "members": step.members,
            "concurrency": step.concurrency,
            "tolerate": step.tolerate,
            "request": request_of(step),
        }
        return header, entries_of(step)
    child = Step(name=NAME, kind=StepKind.WORKFLOW, call=CompiledCall(name=NAME), graph=graph)
    return {"kind": child.kind.value, "members": graph.members, "request": request_of(child)}, ()


def _check(task: Task) -> None:
    if task.step_id is None:
        raise InvalidWorkflow(
            f"{task.name} returned fan_out(...), and this task belongs to no workflow. Enqueue it "
            f"as one: {task.name.rpartition('.')[2]}.s(...).enqueue()."
        )
    if task.workers > 1 or task.broadcast:
        raise InvalidWorkflow(
            f"{task.name} returned fan_out(...), and several workers run this task. Let a step "
            "after it do so."
        )


def _drop_earlier(connection: BaseDatabaseWrapper, task_id: UUID, step_id: int) -> None:
    """Delete the calls of earlier attempts. A late attempt finds none that count."""
    leases = Lease.objects.using(connection.alias).filter(task_id=task_id)
    others = leases.exclude(status__in=[LeaseStatus.RUNNING, LeaseStatus.SUCCEEDED])
    own = StepCalls.objects.using(connection.alias).filter(step_id=step_id)
    own.filter(lease_id__in=others.values("id")).delete()


def _keep(connection: BaseDatabaseWrapper, lease_id: int, first: int, calls: object) -> None:
    text = json.dumps(calls, separators=(",", ":"))
    if not execute(connection, KEEP, lease=lease_id, first=first, calls=text):
        raise LeaseEnded("The lease ended before the body did.")


def drop_unused(connection: BaseDatabaseWrapper, workflow_ids: Sequence[UUID]) -> None:
    """Delete the calls of attempts that did not succeed, once their workflows have ended."""
    execute(connection, DROP_UNUSED, workflows=[id.hex for id in workflow_ids])
