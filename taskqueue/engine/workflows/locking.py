"""Take the locks of an advance: workflows, then their due steps.

The statements are constants: building such a query for each advance took longer than running it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.declarations.workflows.graph import FORMAT
from taskqueue.engine.dialect import as_uuid, dialect_for, select, select_rows
from taskqueue.engine.model_rows import RowsOf
from taskqueue.engine.sessions import KEEPS_PLAN, is_sqlite, kept_plan
from taskqueue.engine.statement import Statement
from taskqueue.models import Step, Workflow

# Fields that an advance does not read are left out: loading them took two fifths of the time of
# `lock_workflows`, and arguments may be large.
WORKFLOWS = RowsOf(
    Workflow, without={"version", "args", "kwargs", "last", "moved_at", "recount_at"}
)
STEPS = RowsOf(Step, without={"inputs", "compensate", "released_at", "counted_at"})

_ADVANCES = f"""
    format <= {FORMAT}
    AND status NOT IN ({", ".join(f"'{status}'" for status in sorted(FINAL_WORKFLOWS))})
"""
_SPECIAL_NOTES = """
    SELECT subject
    FROM taskqueue_stepend
    WHERE workflow_id = workflow.id AND (updates IS NOT NULL OR has_fan)
"""
# Locks: workflows by id, without those that another session has locked, then their due steps. A
# step that another session makes due meanwhile may be missing: the session that holds the workflow
# looks again after its COMMIT. The server keeps the plan: every table is read by a key, or by an
# index of few rows.
LOCK_WORKFLOWS = Statement(
    postgresql=f"""
        WITH clock AS MATERIALIZED (
            SELECT clock_timestamp() AS now WHERE {KEEPS_PLAN}
        ), workflow AS MATERIALIZED (
            SELECT workflow.*
            FROM clock
            CROSS JOIN taskqueue_workflow AS workflow
            WHERE id = ANY (%(workflows)s::uuid[]) AND {_ADVANCES}
            ORDER BY id
            FOR UPDATE OF workflow SKIP LOCKED
        ), step AS MATERIALIZED (
            SELECT step.*
            FROM workflow
            CROSS JOIN LATERAL (
                SELECT *
                FROM taskqueue_step
                WHERE is_due AND workflow_id = workflow.id
                FOR UPDATE
            ) AS step
        )
        SELECT
            {WORKFLOWS.columns("workflow")}, {STEPS.nulls}, note.subject IS NOT NULL,
            CASE WHEN row_number() OVER () = 1 THEN clock_timestamp() END
        FROM workflow
        LEFT JOIN LATERAL ({_SPECIAL_NOTES} LIMIT 1) AS note ON true
        UNION ALL
        SELECT {WORKFLOWS.nulls}, {STEPS.columns("step")}, NULL, NULL
        FROM step
    """,  # noqa: S608  (of constants)
    sqlite=f"""
        WITH workflow AS MATERIALIZED (
            SELECT *
            FROM taskqueue_workflow
            WHERE id IN (SELECT value FROM json_each(%(workflows)s)) AND {_ADVANCES}
        )
        SELECT
            {WORKFLOWS.columns("workflow")}, {STEPS.nulls}, EXISTS ({_SPECIAL_NOTES}), NULL
        FROM workflow
        UNION ALL
        SELECT {WORKFLOWS.nulls}, {STEPS.columns("step")}, NULL, NULL
        FROM workflow
        CROSS JOIN taskqueue_step AS step ON step.workflow_id = workflow.id AND step.is_due
    """,  # noqa: S608  (of constants)
)
# Locks: workflows, without those that another session has locked.
LOCK_OTHERS = Statement.of("""
    SELECT id
    FROM taskqueue_workflow
    WHERE id {in workflows uuid}
    ORDER BY id
    {skip_locked}
""")
# Locks: steps by id, of workflows that the caller has locked; a session that folds one waits for
# nothing.
LOCK_DUE_STEPS = Statement.of("""
    SELECT *
    FROM taskqueue_step
    WHERE is_due AND workflow_id {in workflows uuid}
    ORDER BY id
    {for_update}
""")


@dataclass
class Locked:
    """Workflows that the caller has locked, as they were at that moment."""

    workflows: list[Workflow]
    # Their due steps by id, which are locked too.
    due: list[Step]
    # The moment of locking, by the database's clock.
    now: datetime


def lock_workflows(
    connection: BaseDatabaseWrapper, workflow_ids: Collection[UUID | str]
) -> Locked | None:
    """Lock those of the workflows that no other session has locked and that have not ended.

    A workflow that a newer version has stored is left to that version. `has_notes` of each workflow
    tells whether it has notes that do more than count. Return None if no workflow is left.
    """
    ids = _ids(connection, workflow_ids)
    with kept_plan(connection) as series:
        rows = select(connection, LOCK_WORKFLOWS, workflows=ids, series=series)
    workflows: list[Workflow] = []
    due: list[Step] = []
    now: datetime | None = None
    for row in rows:
        if row[0] is None:
            due.append(STEPS.row(connection, row[WORKFLOWS.count : -2]))
            continue
        workflow = WORKFLOWS.row(connection, row[: WORKFLOWS.count])
        workflow.has_notes = bool(row[-2])  # type: ignore[attr-defined]
        now = now or row[-1]
        workflows.append(workflow)
    if not workflows:
        return None
    due.sort(key=attrgetter("id"))
    return Locked(workflows, due, now or dialect_for(connection).now(connection))


def lock_others(connection: BaseDatabaseWrapper, workflow_ids: Collection[UUID]) -> bool:
    """Lock workflows that are not advanced themselves. Return whether all of them were free."""
    if not workflow_ids:
        return True
    ids = _ids(connection, workflow_ids)
    return len(select(connection, LOCK_OTHERS, workflows=ids)) == len(ids)


def lock_due_steps(
    connection: BaseDatabaseWrapper, workflow_ids: Collection[UUID | str]
) -> list[Step]:
    """Lock and return the due steps of these workflows, for which an end decides something."""
    workflows = _ids(connection, workflow_ids)
    return select_rows(connection, Step, LOCK_DUE_STEPS, workflows=workflows)


def _ids(connection: BaseDatabaseWrapper, workflow_ids: Collection[UUID | str]) -> list[UUID | str]:
    ids = [as_uuid(id) for id in workflow_ids]
    return [id.hex for id in ids] if is_sqlite(connection) else [*ids]
