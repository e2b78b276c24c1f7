"""The triggers that write events: no statement can forget one, and none comes without its change.

An event is written by the transaction of its change where a subscription wants it. Nobody pays for
events that nobody wants but for the conditions of the triggers:

- On PostgreSQL the setting `taskqueue.events` of a session or transaction holds the kinds that
  anybody wanted a moment ago, `-` for none. Workers and enqueues in bulk have it; where it is not
  set, the function of the trigger looks at `taskqueue_audience`. The conditions read the setting
  once for each statement, however many rows it changes.
- On SQLite the conditions look at `taskqueue_audience` themselves.

Who enqueues, claims or ends many tasks at once, on PostgreSQL, lets the triggers leave the kind out
of that statement, and writes all of these events by another one or the same, as one row for many
tasks of a definition (`engine/postgresql/events.py`, `arrivals.py`): the trigger of each row costs
several times that.
"""

from __future__ import annotations

from typing import Any

from taskqueue.migrations._event_sources import SOURCES, Source

# Patterns are those of `fnmatch` with `*` and `?` alone.
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
# Whether the session may want a kind of event, or one that begins so. It is no constant, though it
# is called immutable: the server makes the condition of a trigger ready when a statement first meets
# it, with the results of such functions in place of their calls, and forgets it with the statement.
# So a condition that no row can meet is `false` for all of them. To read the setting for each row
# took a twentieth of an enqueue in bulk.
WANTS = """
CREATE FUNCTION taskqueue_wants(kind text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    known text := current_setting('taskqueue.events', true);
BEGIN
    RETURN known IS NULL OR known = '' OR strpos(known, kind) > 0;
END $$
"""
INSERT = """
    INSERT INTO taskqueue_event (
        kind, at, task_id, workflow_id, name, queue_name, worker, attempt, details
    )
    SELECT new_kind, clock_timestamp(), new_task, new_workflow, new_name, new_queue, new_worker,
        new_attempt, jsonb_strip_nulls(new_details)
    FROM (
        SELECT {kind} AS new_kind, {task}::uuid AS new_task, {workflow}::uuid AS new_workflow,
            {name} AS new_name, {queue} AS new_queue, {worker} AS new_worker,
            {attempt}::integer AS new_attempt, {details} AS new_details
        FROM (SELECT) AS changed{further}
    ) AS found
    WHERE EXISTS (
        SELECT
        FROM taskqueue_subscription
        WHERE kinds ? new_kind
            AND (until IS NULL OR until > clock_timestamp())
            AND (task_id IS NULL OR task_id = new_task)
            AND (workflow_id IS NULL OR workflow_id = new_workflow)
            AND (names = '[]' OR taskqueue_fits(new_name, names))
            AND (queues = '[]' OR taskqueue_fits(new_queue, queues))
    );"""
# The session that has the setting has looked before. Then one statement does all: each costs more
# than what it does. So does a condition with a query of its own.
FUNCTION = f"""
CREATE FUNCTION taskqueue_event_{{label}}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF COALESCE(current_setting('taskqueue.events', true), '') = '' THEN
        IF NOT EXISTS (SELECT FROM taskqueue_audience WHERE strpos(kinds, {{kind}}) > 0) THEN
            RETURN NULL;
        END IF;
    END IF;{INSERT}
    RETURN NULL;
END $$
"""  # noqa: S608  (of constants)
TRIGGER = """
CREATE TRIGGER taskqueue_event_{label}
AFTER {on} ON taskqueue_{table}
FOR EACH ROW WHEN ({condition})
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
    # Where the row decides which kind it is, it is asked for once more.
    is_one_kind = " " not in source.kind
    condition = f"taskqueue_wants({source.kind if is_one_kind else repr(source.table + '.')})"
    if source.when != "true":
        exactly = f"({source.when})" + f" AND taskqueue_wants({source.kind})" * (not is_one_kind)
        condition = f"CASE WHEN {condition} THEN {exactly} ELSE false END"
    parts = source._asdict() | {
        "label": f"{source.table}_{source.label}",
        "condition": condition,
        "details": f"{function}({pairs})",
        "clock": SQLITE_CLOCK,
    }
    return template.format(**parts)


def statements(vendor: str) -> list[str]:
    """Return the statements that make the functions and triggers."""
    if vendor != "postgresql":
        return [_statement(SQLITE_TRIGGER, source, is_postgresql=False) for source in SOURCES]
    made = [FITS, WANTS]
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
    """Undo `create_event_triggers`, before SQLite makes tables anew whose triggers write to others."""
    labels = [f"taskqueue_event_{source.table}_{source.label}" for source in SOURCES]
    if schema_editor.connection.vendor == "postgresql":
        names = ", ".join([*labels, "taskqueue_fits", "taskqueue_wants"])
        schema_editor.execute(f"DROP FUNCTION {names} CASCADE")
        return
    for label in labels:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {label}")
