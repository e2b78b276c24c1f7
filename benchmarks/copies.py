"""Making many workflows from one by copying its rows, so that a benchmark need not run them all."""

from __future__ import annotations

from benchmarks.databases import PostgreSQL

# What a copy of a row has of its own; the columns are asked of the database.
PREPARE = """
CREATE TEMP TABLE copied_workflow AS
SELECT id AS old_id, uuidv7() AS new_id
FROM taskqueue_workflow, generate_series(1, %s)
WHERE finished_at IS NOT NULL = %s;
CREATE TEMP TABLE copied_step AS
SELECT
    workflow.new_id AS workflow_id, step.id AS old_id,
    nextval(pg_get_serial_sequence('taskqueue_step', 'id')) AS new_id
FROM copied_workflow AS workflow
JOIN taskqueue_step AS step ON step.workflow_id = workflow.old_id;
CREATE TEMP TABLE copied_task AS
SELECT step.new_id AS step_id, task.id AS old_id, uuidv7() AS new_id
FROM copied_step AS step
JOIN taskqueue_member AS member ON member.step_id = step.old_id
JOIN taskqueue_task AS task ON task.id = member.task_id;
ANALYZE copied_workflow, copied_step, copied_task;
"""
COPIES = (
    """
    INSERT INTO taskqueue_workflow
    SELECT (jsonb_populate_record(workflow, jsonb_build_object('id', copy.new_id))).*
    FROM copied_workflow AS copy
    JOIN taskqueue_workflow AS workflow ON workflow.id = copy.old_id
    """,
    """
    INSERT INTO taskqueue_step
    SELECT (jsonb_populate_record(
        step, jsonb_build_object('id', copy.new_id, 'workflow_id', copy.workflow_id)
    )).*
    FROM copied_step AS copy
    JOIN taskqueue_step AS step ON step.id = copy.old_id
    """,
    """
    INSERT INTO taskqueue_dependency (upstream_id, downstream_id, "when")
    SELECT upstream.new_id, downstream.new_id, dependency."when"
    FROM taskqueue_dependency AS dependency
    JOIN copied_step AS upstream ON upstream.old_id = dependency.upstream_id
    JOIN copied_step AS downstream
        ON downstream.old_id = dependency.downstream_id
        AND downstream.workflow_id = upstream.workflow_id
    """,
    """
    INSERT INTO taskqueue_task
    SELECT (jsonb_populate_record(
        task, jsonb_build_object('id', copy.new_id, 'step_id', copy.step_id)
    )).*
    FROM copied_task AS copy
    JOIN taskqueue_task AS task ON task.id = copy.old_id
    """,
    """
    INSERT INTO taskqueue_member (step_id, place, task_id)
    SELECT copy.step_id, member.place, copy.new_id
    FROM copied_task AS copy
    JOIN taskqueue_member AS member ON member.task_id = copy.old_id
    """,
    """
    INSERT INTO taskqueue_lease
    SELECT (jsonb_populate_record(
        lease,
        jsonb_build_object('id', nextval('taskqueue_lease_id_seq'), 'task_id', copy.new_id)
    )).*
    FROM copied_task AS copy
    JOIN taskqueue_lease AS lease ON lease.task_id = copy.old_id
    """,
    "DROP TABLE copied_workflow, copied_step, copied_task",
)


def copy_workflows(database: PostgreSQL, number: int, *, is_finished: bool) -> None:
    """Copy the one workflow that has ended, or the one that has not, so many times."""
    prepare = PREPARE.replace("%s", str(int(number)), 1).replace("%s", str(is_finished), 1)
    for statement in (*filter(str.strip, prepare.split(";")), *COPIES):
        database.query(statement)
