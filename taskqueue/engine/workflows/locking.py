"""The locks of an advance: workflows, then their steps that are due.

The statements are constants: building such a query for each advance took longer than running it.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.declarations.workflows.graph import FORMAT
from taskqueue.engine.dialect import as_uuid, select_rows
from taskqueue.engine.sessions import is_sqlite
from taskqueue.engine.statement import Statement
from taskqueue.models import Step, Workflow

_LOCK_WORKFLOWS = f"""
SELECT workflow.*, EXISTS (
    SELECT 1
    FROM taskqueue_stepend AS note
    WHERE note.workflow_id = workflow.id AND (note.updates IS NOT NULL OR note.has_fan)
) AS has_notes
FROM taskqueue_workflow AS workflow
WHERE workflow.id {{workflows}} AND workflow.format <= {FORMAT}
    AND workflow.status NOT IN ({", ".join(f"'{status}'" for status in sorted(FINAL_WORKFLOWS))})
ORDER BY workflow.id
{{lock}}
"""  # noqa: S608  (of constants)
# Locks: workflows by id, without those that somebody else has locked.
LOCK_WORKFLOWS = Statement(
    postgresql=_LOCK_WORKFLOWS.format(
        workflows="= ANY (%(workflows)s::uuid[])", lock="FOR UPDATE OF workflow SKIP LOCKED"
    ),
    sqlite=_LOCK_WORKFLOWS.format(
        workflows="IN (SELECT value FROM json_each(%(workflows)s))", lock=""
    ),
)
_LOCK_DUE_STEPS = """
SELECT *
FROM taskqueue_step
WHERE is_due AND workflow_id {workflows}
ORDER BY id
{lock}
"""
# Locks: steps by id, of workflows that the caller has locked; a fold holds one for a statement.
LOCK_DUE_STEPS = Statement(
    postgresql=_LOCK_DUE_STEPS.format(workflows="= ANY (%(workflows)s::uuid[])", lock="FOR UPDATE"),
    sqlite=_LOCK_DUE_STEPS.format(
        workflows="IN (SELECT value FROM json_each(%(workflows)s))", lock=""
    ),
)


def lock_workflows(
    connection: BaseDatabaseWrapper, workflow_ids: Collection[UUID | str]
) -> list[Workflow]:
    """Lock those of the workflows that nobody else has locked, and that have not ended.

    What a newer version has stored is left to it. `has_notes` of each tells whether an end of it
    does more than count.
    """
    workflows = _ids(connection, workflow_ids)
    return select_rows(connection, Workflow, LOCK_WORKFLOWS, workflows=workflows)


def lock_due_steps(
    connection: BaseDatabaseWrapper, workflow_ids: Collection[UUID | str]
) -> list[Step]:
    """Lock and return the steps of these workflows of which an end decides something."""
    workflows = _ids(connection, workflow_ids)
    return select_rows(connection, Step, LOCK_DUE_STEPS, workflows=workflows)


def _ids(connection: BaseDatabaseWrapper, workflow_ids: Collection[UUID | str]) -> list[UUID | str]:
    ids = [as_uuid(id) for id in workflow_ids]
    return [id.hex for id in ids] if is_sqlite(connection) else [*ids]
