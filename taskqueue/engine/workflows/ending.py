"""The end of a workflow: its status, its callbacks, and the note for its parent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.core.workflow_states import FINAL_WORKFLOWS, After, WorkflowStatus
from taskqueue.declarations.payload import encode
from taskqueue.declarations.workflows.resolution import resolved_call
from taskqueue.engine.dialect import dialect_for, execute
from taskqueue.engine.payloads import Payload
from taskqueue.engine.rows import Ended
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.statement import Statement
from taskqueue.engine.step_ends import note_ends
from taskqueue.engine.workflows.compensating import compensate_next, note_failures
from taskqueue.engine.workflows.results import Results
from taskqueue.exceptions import InvalidArguments, InvalidTask
from taskqueue.models import Workflow

CALLED = {
    WorkflowStatus.SUCCEEDED: {After.SUCCEEDED, After.ENDED},
    WorkflowStatus.FAILED: {After.FAILED, After.ENDED},
    WorkflowStatus.CANCELLED: {After.ENDED},
}


# The fields that the end of a workflow writes, besides its error and trouble.
ENDS = (
    "status", "finished_at", "prune_after", "holds_unique_key", "open_steps", "moved_at",
)  # fmt: skip

# Locks: workflows that the caller has locked.
END = Statement.of(f"""
    UPDATE taskqueue_workflow
    SET {", ".join(f"{name} = %({name})s" for name in ENDS)}, error = NULL, trouble = ''
    WHERE id {{in ids uuid}}
""")  # noqa: S608  (of constants)


def end_if_over(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> bool:
    """End a locked workflow that has no open steps. Return whether it has ended.

    A workflow that did not succeed is compensated first, unless it is paused. The caller passes all
    ended workflows to `write_ends`, which writes their rows.
    """
    if workflow.open_steps > 0:
        return False
    if _end_of(workflow) is not WorkflowStatus.SUCCEEDED:
        if workflow.is_held or compensate_next(connection, workflow, now=now):
            return False
        note_failures(connection, workflow)
    status = _end_of(workflow)
    kept_for = workflow.retention or get_settings().RETENTION[status.value]
    is_child = workflow.parent_step_id is not None
    workflow.status = status
    workflow.finished_at = now
    # A child is pruned with its parent, so it gets no time of its own.
    workflow.prune_after = None if kept_for is None or is_child else now + kept_for
    workflow.holds_unique_key = False
    _call_back(connection, workflow, status)
    return True


def will_succeed(workflow: Workflow) -> bool:
    """Return whether a workflow only has to be ended, as succeeded."""
    return workflow.open_steps <= 0 and _end_of(workflow) is WorkflowStatus.SUCCEEDED


def write_ends(connection: BaseDatabaseWrapper, ended: Sequence[Workflow]) -> None:
    """Write the ends of locked workflows, similar ones at once, and note the ends of children.

    The changes that the last steps made to their workflow are written with its end.
    """
    alike: dict[tuple[Any, ...], list[UUID]] = defaultdict(list)
    for workflow in ended:
        if workflow.error is not None or workflow.trouble:
            workflow.save(using=connection.alias, update_fields=[*ENDS, "error", "trouble"])
        else:
            alike[tuple(getattr(workflow, name) for name in ENDS)].append(workflow.id)
    for values, ids in alike.items():
        columns = dict(zip(ENDS, values, strict=True))
        columns["status"] = str(columns["status"])
        execute(connection, END, **columns, ids=[id.hex for id in ids])
    children = [workflow for workflow in ended if workflow.parent_step_id is not None]
    note_ends(
        connection,
        [
            Ended(str(child.id), "", child.name, child.status, child.parent_step_id)
            for child in children
        ],
    )


def _end_of(workflow: Workflow) -> WorkflowStatus:
    if workflow.error is not None:
        return WorkflowStatus.FAILED
    if workflow.stop_requested_at is not None:
        return WorkflowStatus.CANCELLED
    return WorkflowStatus.SUCCEEDED


def begin_again(workflow: Workflow, now: datetime) -> None:
    """Make a workflow run again, even if it has ended.

    A deadline that has passed counts from now.
    """
    if workflow.status in FINAL_WORKFLOWS:
        workflow.paused_at = None
    workflow.status = WorkflowStatus.RUNNING
    workflow.finished_at = workflow.prune_after = workflow.stop_requested_at = None
    workflow.stop_requested_by = workflow.stop_reason = workflow.trouble = ""
    workflow.holds_unique_key = workflow.unique_key is not None
    workflow.moved_at = workflow.recount_at = now
    if workflow.deadline_at is not None and workflow.deadline_at <= now:
        workflow.deadline_at = now + (workflow.deadline_at - workflow.created_at)


def _call_back(connection: BaseDatabaseWrapper, workflow: Workflow, status: WorkflowStatus) -> None:
    """Enqueue the callbacks for this end.

    If one cannot be enqueued, the workflow's row says why.
    """
    results = Results(connection.alias, workflow.id)
    for when, call in workflow.callbacks:
        if After(when) in CALLED[status]:
            try:
                spec = EnqueueSpec.from_json(call["spec"])
                payload = _payload(spec, call, results)
            except (InvalidTask, InvalidArguments) as error:
                workflow.trouble = f"Callback {call['name']}: {error}"
                continue
            dialect_for(connection).insert(connection, spec, payload)


def _payload(spec: EnqueueSpec, call: dict[str, Any], results: Results) -> Payload:
    limit = get_settings().MAX_ARGUMENTS
    args, kwargs = resolved_call(call["args"], call["kwargs"], results.read)
    args_text = encode(args, limit=limit, what="args") if args else "[]"
    kwargs_text = encode(kwargs, limit=limit, what="kwargs") if kwargs else "{}"
    placement = spec.place(args_text, kwargs_text)
    return Payload(uuid7_hex(), args_text, kwargs_text, None, placement)
