"""Counting the members of steps from their tasks, whatever was counted before."""

from __future__ import annotations

from taskqueue.engine.statement import Statement

# The members of steps that have ended, and those that did not succeed. What is noted is left out:
# it is still to be added, and one snapshot sees an end and its note, or neither. A member whose
# calls run in its place ends with them. Each member's task is looked up by its key: a join would be
# planned by statistics from when nothing had ended, and compare all members with all tasks.
_COUNTED = """
WITH ended (step_id, status) AS MATERIALIZED (
    SELECT
        member.step_id,
        (
            SELECT CASE
                WHEN task.finished_at IS NULL THEN NULL
                WHEN fan.id IS NULL THEN task.status
                WHEN fan.finished_at IS NOT NULL THEN fan.status
            END
            FROM taskqueue_task AS task
            LEFT JOIN taskqueue_step AS fan
                ON fan.parent_step_id = member.step_id AND fan.parent_place = member.place
            WHERE task.id = member.task_id
        )
    FROM taskqueue_member AS member
    WHERE member.step_id {steps} AND member.place >= 0
)
SELECT step_id, sum(ended), sum(failures)
FROM (
    SELECT
        step_id, count(status) AS ended,
        count(*) FILTER (WHERE status <> 'succeeded') AS failures
    FROM ended
    GROUP BY step_id
    UNION ALL
    SELECT parent_step_id, count(*), count(*) FILTER (WHERE status <> 'succeeded')
    FROM taskqueue_workflow
    WHERE parent_step_id {steps} AND finished_at IS NOT NULL
    GROUP BY parent_step_id
    UNION ALL
    SELECT
        step_id, -sum(number), -sum(CASE WHEN status = 'succeeded' THEN 0 ELSE number END)
    FROM taskqueue_stepend
    WHERE workflow_id {workflows} AND step_id {steps}
    GROUP BY step_id
) AS found
GROUP BY step_id
"""
COUNTED = Statement(
    postgresql=_COUNTED.format(
        steps="= ANY (%(steps)s::bigint[])", workflows="= ANY (%(workflows)s::uuid[])"
    ),
    sqlite=_COUNTED.format(
        steps="IN (SELECT value FROM json_each(%(steps)s))",
        workflows="IN (SELECT value FROM json_each(%(workflows)s))",
    ),
)
