"""Counting the members of steps from their tasks, whatever was counted before."""

from __future__ import annotations

from taskqueue.engine.statement import Statement

# The members of steps that have ended, and those that did not succeed. What is noted is left out:
# it is still to be added, and one snapshot sees an end and its note, or neither. A member whose
# calls run in its place ends with them. Each member's task is looked up by its key: a join would be
# planned by statistics from when nothing had ended, and compare all members with all tasks. A
# member whose task somebody has deleted has ended without success: nobody will ever run it.
COUNTED = Statement.of("""
    WITH ended (step_id, status) AS MATERIALIZED (
        SELECT
            member.step_id,
            COALESCE(
                (
                    SELECT CASE
                        WHEN task.finished_at IS NULL THEN ''
                        WHEN fan.id IS NULL THEN task.status
                        WHEN fan.finished_at IS NOT NULL THEN fan.status
                        ELSE ''
                    END
                    FROM taskqueue_task AS task
                    LEFT JOIN taskqueue_step AS fan
                        ON fan.parent_step_id = member.step_id AND fan.parent_place = member.place
                    WHERE task.id = member.task_id
                ),
                'deleted'
            )
        FROM taskqueue_member AS member
        WHERE member.step_id {in steps bigint} AND member.place >= 0
    )
    SELECT step_id, sum(ended), sum(failures)
    FROM (
        SELECT
            step_id, count(*) AS ended,
            count(*) FILTER (WHERE status <> 'succeeded') AS failures
        FROM ended
        WHERE status <> ''
        GROUP BY step_id
        UNION ALL
        SELECT parent_step_id, count(*), count(*) FILTER (WHERE status <> 'succeeded')
        FROM taskqueue_workflow
        WHERE parent_step_id {in steps bigint} AND finished_at IS NOT NULL
        GROUP BY parent_step_id
        UNION ALL
        SELECT
            step_id, -sum(number), -sum(CASE WHEN status = 'succeeded' THEN 0 ELSE number END)
        FROM taskqueue_stepend
        WHERE workflow_id {in workflows uuid} AND step_id {in steps bigint}
        GROUP BY step_id
    ) AS found
    GROUP BY step_id
""")
