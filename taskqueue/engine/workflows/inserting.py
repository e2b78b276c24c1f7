"""Insert workflows: a graph becomes rows in the caller's transaction, and its roots start."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.core.uuid7 import uuid7
from taskqueue.core.workflow_states import StepKind, StepStatus
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.declarations.workflows.graph import Step as CompiledStep
from taskqueue.declarations.workflows.resolution import allowed_failures
from taskqueue.engine.workflows.requests import call_to_json, entries_of, request_of, spec_of_call
from taskqueue.engine.workflows.tasks import Unsent, chunk_of, insert_blocked, keep_calls
from taskqueue.exceptions import DuplicateWorkflow, TaskQueueError
from taskqueue.models import Dependency, Step, Workflow

# The most rows of one statement.
BATCH = 500
# How long a workflow may make no progress before its steps are counted anew.
STILL = timedelta(seconds=60)
# How often an enqueue looks for the holder of its key if each holder disappears meanwhile.
TRIES = 20


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a workflow comes from: a parent step, a schedule, or a plain call."""

    # For a child: the step that runs it, and the deadline of that step's workflow.
    parent_step_id: int | None = None
    parent_place: int | None = None
    # A child of a paused workflow begins paused.
    paused_at: datetime | None = None
    deadline_at: datetime | None = None
    schedule_id: int | None = None
    nominal_at: datetime | None = None


ALONE = Origin()


def insert_rows(
    connection: BaseDatabaseWrapper,
    graph: Graph,
    *,
    now: datetime,
    origin: Origin = ALONE,
    unsent: Unsent | None = None,
) -> Workflow:
    """Insert a graph in the caller's transaction, without beginning its roots.

    Calls of maps that begin with the workflow are put into `unsent`, and the caller sends them at
    once. Without `unsent` they are stored.
    """
    workflow = _workflow(graph, now=now, origin=origin)
    workflow.save(using=connection.alias, force_insert=True)
    steps = _insert_steps(connection, graph, workflow)
    insert_blocked(
        connection,
        (
            (steps[step.name].id, spec_of_call(step.call), (step.call.args, step.call.kwargs))
            for step in graph.steps
            if step.kind is StepKind.TASK and step.call is not None
        ),
        now=now,
    )
    for step in graph.steps:
        if step.members and step.kind is StepKind.MAP:
            row = steps[step.name]
            if unsent is not None and _begins_whole(step, row):
                unsent[row.id] = step.calls
                continue
            keep_calls(connection, row.id, entries_of(step), chunk=chunk_of(row.request))
    return workflow


def _begins_whole(step: CompiledStep, row: Step) -> bool:
    """Return whether all members of a map are sent as soon as its workflow begins."""
    return not row.waits and row.when is None and row.concurrency is None and not step.parts


def holder_of(connection: BaseDatabaseWrapper, graph: Graph) -> Workflow | None:
    """Return the workflow that holds the graph's unique key.

    Raises `DuplicateWorkflow` if the graph says that duplicates raise.
    """
    if graph.unique_key is None:
        return None
    held = Workflow.objects.using(connection.alias).filter(holds_unique_key=True, name=graph.name)
    holder = held.filter(unique_key=graph.unique_key).first()
    if holder is not None and graph.on_duplicate == "raise":
        raise DuplicateWorkflow(_(
            "Workflow {holder} ({status}) holds the unique key {unique_key!r} of {graph}.",
            holder=holder.id, status=holder.status, unique_key=graph.unique_key, graph=graph.name,
        ), holder.id)  # fmt: skip
    return holder


def insert_or_find(
    connection: BaseDatabaseWrapper,
    graph: Graph,
    *,
    now: datetime,
    origin: Origin = ALONE,
    unsent: Unsent,
) -> tuple[Workflow, bool]:
    """Insert a graph, or find the workflow that holds its unique key. Return whether it is new.

    `unsent` is as for `insert_rows`. Raises `DuplicateWorkflow` if the graph says that duplicates
    raise.
    """
    if graph.unique_key is None:
        return insert_rows(connection, graph, now=now, origin=origin, unsent=unsent), True
    for _try in range(TRIES):
        holder = holder_of(connection, graph)
        if holder is not None:
            return holder, False
        try:
            with atomic(using=connection.alias):
                row = insert_rows(connection, graph, now=now, origin=origin, unsent=unsent)
                return row, True
        except IntegrityError:  # Another enqueue inserted it first.
            unsent.clear()
    raise TaskQueueError(_(
        "The holder of the unique key {unique_key!r} of {graph} changed {tries} times while this "
        "workflow was enqueued. Enqueue it again.",
        unique_key=graph.unique_key, graph=graph.name, tries=TRIES,
    ))  # fmt: skip


def _workflow(graph: Graph, *, now: datetime, origin: Origin) -> Workflow:
    return Workflow(
        id=uuid7(),
        name=graph.name,
        version=graph.version,
        format=graph.format,
        args=json.loads(graph.args),
        kwargs=json.loads(graph.kwargs),
        last=list(graph.last),
        parent_step_id=origin.parent_step_id,
        parent_place=origin.parent_place,
        schedule_id=origin.schedule_id,
        nominal_at=origin.nominal_at,
        unique_key=graph.unique_key,
        holds_unique_key=graph.unique_key is not None,
        open_steps=len(graph.steps),
        total_steps=len(graph.steps),
        members=graph.members,
        deadline_at=_deadline(graph, now=now, limit=origin.deadline_at),
        paused_at=origin.paused_at,
        callbacks=[[each.when.value, call_to_json(each.call)] for each in graph.callbacks],
        fail_fast=graph.fail_fast,
        retention=graph.retention,
        created_at=now,
        moved_at=now,
        recount_at=now + STILL,
    )


def _deadline(graph: Graph, *, now: datetime, limit: datetime | None) -> datetime | None:
    own = graph.deadline
    moment = now + own if isinstance(own, timedelta) else own
    return min((each for each in (moment, limit) if each is not None), default=None)


def _insert_steps(
    connection: BaseDatabaseWrapper, graph: Graph, workflow: Workflow
) -> dict[str, Step]:
    """Insert the steps and the dependencies between them. Return the rows by name."""
    waits: dict[str, int] = {}
    for edge in graph.edges:
        waits[edge.downstream] = waits.get(edge.downstream, 0) + 1
    rows = [_step(step, workflow, waits=waits.get(step.name, 0)) for step in graph.steps]
    Step.objects.using(connection.alias).bulk_create(rows, batch_size=BATCH)
    steps = {row.name: row for row in rows}
    Dependency.objects.using(connection.alias).bulk_create(
        (
            Dependency(
                upstream_id=steps[edge.upstream].id,
                downstream_id=steps[edge.downstream].id,
                when=edge.when.value,
            )
            for edge in graph.edges
        ),
        batch_size=BATCH,
    )
    return steps


def _step(step: CompiledStep, workflow: Workflow, *, waits: int) -> Step:
    return Step(
        workflow=workflow,
        name=step.name,
        kind=step.kind.value,
        status=StepStatus.WAITING.value,
        waits=waits,
        # The cause of a root is the workflow itself.
        taken=0 if waits else 1,
        members=step.members,
        concurrency=step.concurrency,
        tolerate=step.tolerate,
        tolerated=allowed_failures(step.tolerate, step.members or 0),
        on_failure=step.on_failure.value,
        when=step.when and dict(step.when),
        request=request_of(step),
        inputs=list(step.inputs),
        compensate=step.compensate and call_to_json(step.compensate),
    )
