"""The changes that are events, and what each event holds.

Never arguments, results, messages or tracebacks, and never more than 2 KiB of details.
`engine/postgresql/events.py` has the starts and successes of many tasks once more, and
`arrivals.py` their enqueues.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# On PostgreSQL each statement reads the conditions of the triggers that it may fire, with all their
# texts, so those of tasks and leases are short.
FINAL = "('succeeded', 'failed', 'cancelled')"
# Texts that are cut, so that details stay within 2 KiB: a character takes up to six bytes of JSON,
# and columns of SQLite have no bound.
ERROR, STEP_NAME = "substr({}, 1, 200)", "substr({}, 1, 100)"
STEP = ("step", STEP_NAME.format("step.name"))


class Source(NamedTuple):
    """Rows whose changes are events. Expressions are SQL of both databases over OLD and NEW.

    `{hex}`, `{seconds}` and the like are filled in by each database.
    """

    table: str
    # What the trigger is called besides `taskqueue_event_`.
    label: str
    # INSERT, or UPDATE OF some columns.
    on: str
    # Whether a changed row is an event at all.
    when: str
    kind: str
    # The rest of the columns.
    task: str = "NULL"
    workflow: str = "NULL"
    name: str = "''"
    queue: str = "''"
    worker: str = "''"
    attempt: str = "NULL"
    # Pairs of a name and an expression; those that are null are left out.
    details: tuple[tuple[str, str], ...] = ()
    # Further rows that the expressions use.
    further: str = ""


ERROR_OF_TASK = "NULLIF(COALESCE(NULLIF(lease.error_class, ''), NEW.error_class), '')"
LEASE_OF_TASK = """
    LEFT JOIN taskqueue_lease AS lease
        ON lease.task_id = NEW.id AND lease.attempt = NEW.attempt AND NOT lease.is_shared"""
STEP_OF_TASK = """
    LEFT JOIN taskqueue_step AS step ON step.id = NEW.step_id"""
TASK_OF_LEASE = """
    JOIN taskqueue_task AS task ON task.id = NEW.task_id
    LEFT JOIN taskqueue_step AS step ON step.id = task.step_id"""
OF_LEASE: dict[str, Any] = {
    "table": "lease",
    "task": "NEW.task_id",
    "workflow": "step.workflow_id",
    "name": "task.name",
    "queue": "task.queue_name",
    "worker": "NEW.worker_id",
    "attempt": "NEW.attempt",
    "further": TASK_OF_LEASE,
}
SOURCES = (
    Source(
        "task", "enqueued", "INSERT", "true", "'task.enqueued'",
        task="NEW.id", workflow="step.workflow_id", name="NEW.name", queue="NEW.queue_name",
        details=(("status", "NEW.status"), STEP),
        further=STEP_OF_TASK,
    ),
    Source(
        "task", "moved", "UPDATE OF status",
        # A task is final once it has `finished_at`, says a CHECK constraint.
        """OLD.status <> NEW.status AND (
            NEW.finished_at IS NOT NULL OR NEW.status = 'retrying' OR OLD.finished_at IS NOT NULL
        )""",
        "CASE WHEN NEW.finished_at IS NULL THEN 'task.retrying' ELSE 'task.' || NEW.status END",
        task="NEW.id", workflow="step.workflow_id", name="NEW.name", queue="NEW.queue_name",
        worker="COALESCE(lease.worker_id, '')", attempt="NEW.attempt",
        details=(
            ("status", "NEW.status"),
            ("error", ERROR.format(ERROR_OF_TASK)),
            ("seconds", "{seconds lease.started_at lease.finished_at}"),
            STEP,
        ),
        further=LEASE_OF_TASK + STEP_OF_TASK,
    ),
    Source(label="started", on="INSERT", when="true", kind="'task.started'", **OF_LEASE),
    Source(
        label="progressed", on="UPDATE OF progress",
        when="NEW.finished_at IS NULL AND NEW.progress IS NOT NULL "
        "AND COALESCE(OLD.progress, -1) <> NEW.progress",
        kind="'task.progressed'", details=(("percent", "NEW.progress"),), **OF_LEASE,
    ),
    Source(
        label="lost", on="UPDATE OF status",
        when="OLD.finished_at IS NULL AND NEW.status = 'lost'",
        kind="'task.lost'",
        details=(("error", ERROR.format("NULLIF(NEW.error_class, '')")),), **OF_LEASE,
    ),
    Source(
        label="stopping", on="UPDATE OF stop_requested_at",
        when="OLD.stop_requested_at IS NULL AND NEW.stop_requested_at IS NOT NULL",
        kind="'task.stopping'", **OF_LEASE,
    ),
    Source(
        "workflow", "enqueued", "INSERT", "true", "'workflow.started'",
        workflow="NEW.id", name="NEW.name",
    ),
    Source(
        "workflow", "moved", "UPDATE OF status",
        f"OLD.status <> NEW.status AND (NEW.status IN {FINAL} OR OLD.status IN {FINAL})",
        f"'workflow.' || CASE WHEN NEW.status IN {FINAL} THEN NEW.status ELSE 'started' END",
        workflow="NEW.id", name="NEW.name",
        details=(
            ("status", "NEW.status"),
            ("step", STEP_NAME.format("NULLIF(NEW.failed_step, '')")),
            ("seconds", "{seconds NEW.created_at NEW.finished_at}"),
        ),
    ),
    Source(
        "step", "failed", "UPDATE OF status", "OLD.status <> 'failed' AND NEW.status = 'failed'",
        "'step.failed'",
        workflow="NEW.workflow_id", name="workflow.name",
        details=(("step", STEP_NAME.format("NEW.name")),),
        further="\n    JOIN taskqueue_workflow AS workflow ON workflow.id = NEW.workflow_id",
    ),
    *(
        Source(
            "occurrence", label, on, when, "'schedule.skipped'", name="schedule.name",
            details=(("count", "NEW.count"), ("nominal_at", "{moment NEW.nominal_at}")),
            further="\n    JOIN taskqueue_schedule AS schedule ON schedule.id = NEW.schedule_id",
        )
        for label, on, when in (
            ("skipped", "INSERT", "NEW.status = 'skipped'"),
            (
                "skipped_later", "UPDATE OF status",
                "OLD.status <> 'skipped' AND NEW.status = 'skipped'",
            ),
        )
    ),
    Source(
        "schedule", "paused", "UPDATE OF paused_at",
        "OLD.paused_at IS NULL AND NEW.paused_at IS NOT NULL", "'schedule.paused'",
        name="NEW.name", details=(("failures", "NEW.failures_in_row"),),
    ),
    Source(
        "queue", "made", "INSERT", "NEW.paused_at IS NOT NULL", "'queue.paused'",
        queue="NEW.name",
    ),
    Source(
        "queue", "changed", "UPDATE OF paused_at",
        "(OLD.paused_at IS NULL) <> (NEW.paused_at IS NULL)",
        "CASE WHEN NEW.paused_at IS NULL THEN 'queue.resumed' ELSE 'queue.paused' END",
        queue="NEW.name",
    ),
    Source("worker", "began", "INSERT", "true", "'worker.started'", worker="NEW.name"),
    Source(
        "worker", "changed", "UPDATE OF status, incarnation",
        "OLD.incarnation <> NEW.incarnation OR OLD.status <> NEW.status "
        "AND NEW.status IN ('quiet', 'stopped', 'lost')",
        "'worker.' || CASE WHEN OLD.incarnation <> NEW.incarnation THEN 'started' "
        "ELSE NEW.status END",
        worker="NEW.name",
    ),
    Source(
        "operation", "finished", "UPDATE OF finished_at",
        "OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL", "'operation.finished'",
        name="NEW.verb",
        details=(("operation", "{uuid NEW.id}"), ("status", "NEW.status"), ("done", "NEW.done")),
    ),
)  # fmt: skip
