"""The triggers that write events: no statement can forget one, and none comes without its change.

An event is written by the transaction of its change where a subscription wants it. Nobody pays for
events that nobody wants but for the conditions of the triggers:

- On PostgreSQL the setting `taskqueue.events` of a session or transaction holds the kinds that
  anybody wanted a moment ago, `-` for none. Workers and enqueues have it; where it is not set, the
  function of the trigger looks at `taskqueue_audience`.
- On SQLite the conditions look at `taskqueue_audience` themselves.

What an event holds is listed here alone: never arguments, results, messages or tracebacks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

SETTING = "taskqueue.events"
FINAL = "('succeeded', 'failed', 'cancelled')"


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
        details=(("status", "NEW.status"), ("step", "step.name")),
        further=STEP_OF_TASK,
    ),
    Source(
        "task", "moved", "UPDATE OF status",
        f"""OLD.status <> NEW.status AND (
            NEW.status IN ('succeeded', 'failed', 'cancelled', 'retrying')
            OR OLD.status IN {FINAL}
        )""",
        f"CASE WHEN NEW.status IN {FINAL} THEN 'task.' || NEW.status ELSE 'task.retrying' END",
        task="NEW.id", workflow="step.workflow_id", name="NEW.name", queue="NEW.queue_name",
        worker="COALESCE(lease.worker_id, '')", attempt="NEW.attempt",
        details=(
            ("status", "NEW.status"),
            ("error", "NULLIF(COALESCE(NULLIF(lease.error_class, ''), NEW.error_class), '')"),
            ("seconds", "{seconds lease.started_at lease.finished_at}"),
            ("step", "step.name"),
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
        label="lost", on="UPDATE OF status", when="OLD.status <> 'lost' AND NEW.status = 'lost'",
        kind="'task.lost'",
        details=(("error", "NULLIF(NEW.error_class, '')"),), **OF_LEASE,
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
            ("step", "NULLIF(NEW.failed_step, '')"),
            ("seconds", "{seconds NEW.created_at NEW.finished_at}"),
        ),
    ),
    Source(
        "step", "failed", "UPDATE OF status", "OLD.status <> 'failed' AND NEW.status = 'failed'",
        "'step.failed'",
        workflow="NEW.workflow_id", name="workflow.name", details=(("step", "NEW.name"),),
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

# Whether a subscription wants the event; patterns are those of `fnmatch` with `*` and `?` alone.
WRITE = """
CREATE FUNCTION taskqueue_write_event(
    new_kind text, new_task uuid, new_workflow uuid, new_name text, new_queue text,
    new_worker text, new_attempt integer, new_details jsonb
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT
        FROM taskqueue_subscription
        WHERE kinds ? new_kind
            AND (until IS NULL OR until > clock_timestamp())
            AND (task_id IS NULL OR task_id = new_task)
            AND (workflow_id IS NULL OR workflow_id = new_workflow)
            AND (names = '[]' OR taskqueue_fits(new_name, names))
            AND (queues = '[]' OR taskqueue_fits(new_queue, queues))
    ) THEN
        INSERT INTO taskqueue_event (
            kind, at, task_id, workflow_id, name, queue_name, worker, attempt, details
        ) VALUES (
            new_kind, clock_timestamp(), new_task, new_workflow, new_name, new_queue, new_worker,
            new_attempt, jsonb_strip_nulls(new_details)
        );
    END IF;
END $$
"""
FITS = r"""
CREATE FUNCTION taskqueue_fits(subject text, patterns jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT EXISTS (
        SELECT
        FROM jsonb_array_elements_text(patterns) AS listed (pattern)
        WHERE subject LIKE replace(replace(replace(replace(replace(
            pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%'), '?', '_')
    )
$$
"""
# The first look is all that a change pays that nobody wants to hear of.
FUNCTION = """
CREATE FUNCTION taskqueue_event_{label}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM taskqueue_audience WHERE strpos(kinds, {kind}) > 0) THEN
        PERFORM taskqueue_write_event(
            {kind}, {task}::uuid, {workflow}::uuid, {name}, {queue}, {worker}, {attempt}::integer,
            {details}
        )
        FROM (SELECT) AS changed{further};
    END IF;
    RETURN NULL;
END $$
"""
TRIGGER = """
CREATE TRIGGER taskqueue_event_{label}
AFTER {on} ON taskqueue_{table}
FOR EACH ROW WHEN (
    ({when}) AND strpos(
        COALESCE(NULLIF(current_setting('taskqueue.events', true), ''), {kind}), {kind}
    ) > 0
)
EXECUTE FUNCTION taskqueue_event_{label}()
"""
SQLITE_TRIGGER = """
CREATE TRIGGER taskqueue_event_{label} AFTER {on} ON taskqueue_{table}
WHEN ({when}) AND EXISTS (SELECT 1 FROM taskqueue_audience WHERE instr(kinds, {kind}))
BEGIN
    INSERT INTO taskqueue_event (
        kind, at, task_id, workflow_id, name, queue_name, worker, attempt, details
    )
    SELECT new_kind, {clock}, new_task, new_workflow, new_name, new_queue, new_worker, new_attempt,
        json_patch('{{}}', new_details)
    FROM (
        SELECT {kind} AS new_kind, {task} AS new_task, {workflow} AS new_workflow,
            {name} AS new_name, {queue} AS new_queue, {worker} AS new_worker,
            {attempt} AS new_attempt, {details} AS new_details
        FROM (SELECT 1) AS changed{further}
    )
    WHERE EXISTS (
        SELECT 1
        FROM taskqueue_subscription
        WHERE EXISTS (SELECT 1 FROM json_each(kinds) WHERE value = new_kind)
            AND (until IS NULL OR until > {clock})
            AND (task_id IS NULL OR task_id = new_task)
            AND (workflow_id IS NULL OR workflow_id = new_workflow)
            AND (names = '[]' OR EXISTS (
                SELECT 1 FROM json_each(names) WHERE new_name GLOB value
            ))
            AND (queues = '[]' OR EXISTS (
                SELECT 1 FROM json_each(queues) WHERE new_queue GLOB value
            ))
    );
END
"""
SQLITE_CLOCK = "strftime('%Y-%m-%d %H:%M:%f', 'now')"


def _filled(expression: str, *, is_postgresql: bool) -> str:
    """An expression with what the databases write differently."""
    word, _, arguments = expression.strip("{}").partition(" ")
    if not expression.startswith("{"):
        return expression
    columns = arguments.split()
    if word == "seconds":
        if is_postgresql:
            return f"round(EXTRACT(epoch FROM {columns[1]} - {columns[0]})::numeric, 3)"
        return f"round((julianday({columns[1]}) - julianday({columns[0]})) * 86400.0, 3)"
    if is_postgresql:
        return f"{columns[0]}::text" if word == "uuid" else columns[0]
    if word == "moment":
        return f"replace({columns[0]}, ' ', 'T') || '+00:00'"
    return " || '-' || ".join(
        f"substr({columns[0]}, {start}, {length})"
        for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    )


def _statement(template: str, source: Source, *, is_postgresql: bool) -> str:
    function = "jsonb_build_object" if is_postgresql else "json_object"
    pairs = ", ".join(
        f"'{name}', {_filled(expression, is_postgresql=is_postgresql)}"
        for name, expression in source.details
    )
    parts = source._asdict() | {
        "label": f"{source.table}_{source.label}",
        "details": f"{function}({pairs})",
        "clock": SQLITE_CLOCK,
    }
    return template.format(**parts)


def statements(vendor: str) -> list[str]:
    """Return the statements that make the functions and triggers."""
    if vendor != "postgresql":
        return [_statement(SQLITE_TRIGGER, source, is_postgresql=False) for source in SOURCES]
    made = [FITS, WRITE]
    for source in SOURCES:
        made += [
            _statement(template, source, is_postgresql=True) for template in (FUNCTION, TRIGGER)
        ]
    return made


def create_event_triggers(apps: Any, schema_editor: Any) -> None:
    """The triggers that write events."""
    for statement in statements(schema_editor.connection.vendor):
        # Without parameters: a percent sign stands for itself.
        schema_editor.execute(statement, params=None)


def drop_event_triggers(apps: Any, schema_editor: Any) -> None:
    """Undo `create_event_triggers`; SQLite drops triggers with their tables."""
    if schema_editor.connection.vendor == "postgresql":
        functions = [f"taskqueue_event_{source.table}_{source.label}" for source in SOURCES]
        names = ", ".join([*functions, "taskqueue_write_event", "taskqueue_fits"])
        schema_editor.execute(f"DROP FUNCTION {names} CASCADE")
