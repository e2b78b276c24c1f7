"""The end of a workflow: its status, its callbacks, and the note for its parent."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.core.workflow_states import After, WorkflowStatus
from taskqueue.declarations.payload import encode
from taskqueue.declarations.workflows.resolution import resolved_call
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.rows import Ended
from taskqueue.engine.specs import EnqueueSpec, Payload
from taskqueue.engine.step_ends import note_ends
from taskqueue.engine.workflows.results import Results
from taskqueue.exceptions import InvalidArguments, InvalidWorkflow
from taskqueue.models import Workflow

CALLED = {
    WorkflowStatus.SUCCEEDED: {After.SUCCEEDED, After.ENDED},
    WorkflowStatus.FAILED: {After.FAILED, After.ENDED},
    WorkflowStatus.CANCELLED: {After.ENDED},
}


def end_if_over(connection: BaseDatabaseWrapper, workflow: Workflow, *, now: datetime) -> bool:
    """End a locked workflow of which no step is open; whether it has ended."""
    if workflow.open_steps > 0:
        return False
    status = WorkflowStatus.SUCCEEDED
    if workflow.error is not None:
        status = WorkflowStatus.FAILED
    elif workflow.stop_requested_at is not None:
        status = WorkflowStatus.CANCELLED
    kept_for = workflow.retention or get_settings().RETENTION[status.value]
    is_child = workflow.parent_step_id is not None
    workflow.status = status
    workflow.finished_at = now
    # A child is pruned with its parent.
    workflow.prune_after = None if kept_for is None or is_child else now + kept_for
    workflow.holds_unique_key = False
    _call_back(connection, workflow, status)
    workflow.save(
        using=connection.alias,
        update_fields=["status", "finished_at", "prune_after", "holds_unique_key", "trouble"],
    )
    if is_child:
        ended = Ended(str(workflow.id), "", workflow.name, status, workflow.parent_step_id)
        note_ends(connection, [ended])
    return True


def _call_back(connection: BaseDatabaseWrapper, workflow: Workflow, status: WorkflowStatus) -> None:
    """Enqueue the callbacks of this end. One that cannot be is told of in the row."""
    results = Results(connection.alias, workflow.id)
    for when, call in workflow.callbacks:
        if After(when) in CALLED[status]:
            try:
                payload = _payload(call, results)
            except (InvalidWorkflow, InvalidArguments) as error:
                workflow.trouble = f"Callback {call['name']}: {error}"
                continue
            spec = EnqueueSpec.from_json(call["spec"])
            dialect_for(connection).insert(connection, spec, payload)


def _payload(call: dict[str, Any], results: Results) -> Payload:
    limit = get_settings().MAX_ARGUMENTS
    args, kwargs = resolved_call(call["args"], call["kwargs"], results.read)
    args_text = encode(args, limit=limit, what="args") if args else "[]"
    kwargs_text = encode(kwargs, limit=limit, what="kwargs") if kwargs else "{}"
    return Payload(uuid7_hex(), args_text, kwargs_text, None)
