"""Write the events of many changes in the statement that makes them, a row per definition.

A trigger for each row would cost several times as much, and so would finding the rows again by
their leases.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.event_kinds import EventKind
from taskqueue.engine.connections import is_in_transaction, transaction
from taskqueue.engine.sessions import NO_EVENTS, WANTED, WANTED_EVENTS
from taskqueue.engine.statement import fetch

# For fewer rows, events by triggers cost less than two more statements.
LEAST = 10
SET_WANTED = f"SELECT set_config('{WANTED_EVENTS}', %s, true)"
# Whether a subscription wants a kind of event, if it matches its further conditions.
WISHES = """taskqueue_subscription AS wish
        WHERE kinds ? '{kind}' AND (until IS NULL OR until > clock_timestamp())"""
# An event is written if a subscription wants it, as in the triggers. Whether somebody wants the
# kind without further conditions is checked once for all rows.
_PUBLISH = f"""
    INSERT INTO taskqueue_eventbatch (
        id, kind, at, workflow_id, name, queue_name, worker, details,
        number, task_ids, attempts, seconds
    )
    SELECT
        nextval('taskqueue_event_id_seq'), '{{kind}}', clock_timestamp(), change.workflow_id,
        change.name, change.queue_name, change.worker_id, {{details}},
        count(*), array_agg(change.id ORDER BY {{order}}),
        array_agg(change.attempt ORDER BY {{order}}), {{seconds}}
    FROM (
        SELECT {{columns}}, step.workflow_id, step.name AS step
        FROM {{changed}} AS task
        LEFT JOIN taskqueue_step AS step ON step.id = ANY (ARRAY[task.step_id])
    ) AS change
    WHERE EXISTS (
        SELECT
        FROM {WISHES}
            AND wish.task_id IS NULL AND wish.workflow_id IS NULL
            AND names = '[]' AND queues = '[]'
    ) OR EXISTS (
        SELECT
        FROM {WISHES}
            AND (wish.task_id IS NULL OR wish.task_id = change.id)
            AND (wish.workflow_id IS NULL OR wish.workflow_id = change.workflow_id)
            AND (names = '[]' OR taskqueue_fits(change.name, names))
            AND (queues = '[]' OR taskqueue_fits(change.queue_name, queues))
    )
    GROUP BY change.workflow_id, change.name, change.queue_name, change.worker_id, change.step
"""  # noqa: S608  (of constants)
# For `claimed`: tasks with their lanes.
PUBLISH_STARTED = _PUBLISH.format(
    kind=EventKind.TASK_STARTED,
    changed="claimed",
    columns="task.*, %(worker)s::text AS worker_id",
    details="'{}'::jsonb",
    order="change.lane, change.priority DESC, change.run_after, change.id",
    seconds="NULL::double precision[]",
)
# For `done`: tasks with values of their leases.
PUBLISH_SUCCEEDED = _PUBLISH.format(
    kind=EventKind.TASK_SUCCEEDED,
    changed="done",
    columns="task.*",
    details="jsonb_strip_nulls(jsonb_build_object('status', 'succeeded', 'step', change.step))",
    order="change.lease_id",
    seconds="array_agg(EXTRACT(epoch FROM change.ran)::float8 ORDER BY change.lease_id)",
)


@contextmanager
def published_by_statement(
    connection: BaseDatabaseWrapper, kind: EventKind, most: int
) -> Iterator[bool]:
    """Yield whether the block's statement must write the events of a kind that it causes.

    If so, the block is a transaction, and triggers leave out that kind. Otherwise triggers write
    the events: because the session is shared, or because there are few rows.
    """
    wanted = connection.settings_dict.get(WANTED, NO_EVENTS).split()
    if most < LEAST or kind not in wanted:
        yield False
        return
    with nullcontext() if is_in_transaction(connection) else transaction(connection):
        others = " ".join(each for each in wanted if each != kind)
        fetch(connection, SET_WANTED, (others or NO_EVENTS,))
        yield True
        fetch(connection, SET_WANTED, (" ".join(wanted),))
