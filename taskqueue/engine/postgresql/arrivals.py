"""Count and announce tasks that are inserted in bulk, and write their events.

One statement after the insert does all of this. It writes the events as a few rows of
`taskqueue_eventbatch`, because a trigger for each row would cost as much as the row itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.event_kinds import EventKind
from taskqueue.engine.postgresql.events import LEAST, WISHES
from taskqueue.engine.sessions import BEGIN_BULK
from taskqueue.engine.statement import fetch

# The tasks of one batch of events. This many fit into half a page, so the row is not stored out of
# line.
MOST_TOGETHER = 225
# For tasks that differ only in their ids and steps: a slice of the array for each batch. A
# subscription matches all of them, or those whose task id it names, because the ids may be chosen
# by the caller of the enqueue.
_EVENTS = f""", wish AS MATERIALIZED (
    SELECT task_id, workflow_id FROM {WISHES.format(kind=EventKind.TASK_ENQUEUED)}
            AND (names = '[]' OR taskqueue_fits(%(name)s, names))
            AND (queues = '[]' OR taskqueue_fits(%(queue_name)s, queues))
), published AS (
    INSERT INTO taskqueue_eventbatch (
        id, kind, at, workflow_id, name, queue_name, worker, details, number, task_ids
    )
    SELECT
        nextval('taskqueue_event_id_seq'), '{EventKind.TASK_ENQUEUED}', clock_timestamp(),
        workflow_id, %(name)s, %(queue_name)s, '',
        jsonb_strip_nulls(jsonb_build_object('status', %(status)s::text, 'step', step)),
        cardinality(ids), ids
    FROM (
        SELECT
            step.workflow_id, step.name AS step,
            CASE
                WHEN EXISTS (
                    SELECT
                    FROM wish
                    WHERE wish.task_id IS NULL
                        AND (wish.workflow_id IS NULL OR wish.workflow_id = step.workflow_id)
                ) THEN own.ids
                ELSE ARRAY(
                    SELECT id
                    FROM unnest(own.ids) AS task (id)
                    WHERE EXISTS (
                        SELECT
                        FROM wish
                        WHERE wish.task_id = task.id
                            AND (wish.workflow_id IS NULL OR wish.workflow_id = step.workflow_id)
                    )
                )
            END AS ids
        FROM (
            SELECT step_id, ids::uuid[] AS ids
            FROM unnest(%(steps)s::bigint[], %(ids)s::text[])
                WITH ORDINALITY AS piece (step_id, ids, place)
            ORDER BY place
        ) AS own
        LEFT JOIN taskqueue_step AS step ON step.id = ANY (ARRAY[own.step_id])
        OFFSET 0
    ) AS batch
    WHERE cardinality(ids) > 0
)"""  # noqa: S608  (of constants)
# The caller's transaction may be long: later changes in it must reach everybody who has subscribed
# until then. `set_config` returns the text, which is not null.
_END = """
WITH counted AS (
    INSERT INTO taskqueue_arrival (id, queue_name, name, number)
    SELECT 0, %(queue_name)s, %(name)s, %(number)s
    WHERE set_config('taskqueue.events', %(known)s, true) IS NOT NULL
){events}
SELECT pg_notify('taskqueue', %(announced)s)
FROM taskqueue_worker
WHERE is_idle AND %(announced)s::text IS NOT NULL
LIMIT 1
"""
END = _END.format(events="")
END_WITH_EVENTS = _END.format(events=_EVENTS)


class Bulk(NamedTuple):
    """A bulk insert that has begun."""

    # The time of the insert, by the database's clock.
    moment: datetime
    # The kinds of events that the session knew to be wanted before.
    known: str
    # Whether `end_bulk` must write the events, because triggers leave them out.
    publishes: bool


def begin_bulk(connection: BaseDatabaseWrapper, number: int) -> Bulk:
    """Begin to insert `number` tasks, within a transaction."""
    ((moment, known, wanted, _),) = fetch(connection, BEGIN_BULK, (number >= LEAST,))
    publishes = number >= LEAST and EventKind.TASK_ENQUEUED in wanted.split()
    return Bulk(moment, known or "", publishes)


def end_bulk(
    connection: BaseDatabaseWrapper,
    bulk: Bulk,
    *,
    queue_name: str,
    name: str,
    status: str,
    number: int,
    tasks: Iterable[tuple[int | None, Sequence[str]]],
    announced: str | None,
) -> None:
    """Count the inserted tasks, and write their events if anybody wants them.

    `tasks` are steps with the ids of their tasks, in order, which are used only for events.
    `announced` is the payload with which sleeping workers are notified.
    """
    parameters = {
        "queue_name": queue_name, "name": name, "number": number,
        "known": bulk.known, "announced": announced,
    }  # fmt: skip
    if not bulk.publishes:
        fetch(connection, END, parameters)
        return
    steps, ids = zip(*_pieces(tasks), strict=True)
    parameters |= {"status": status, "steps": list(steps), "ids": list(ids)}
    fetch(connection, END_WITH_EVENTS, parameters)


def _pieces(
    tasks: Iterable[tuple[int | None, Sequence[str]]],
) -> Iterator[tuple[int | None, str]]:
    """Yield the step and the ids of each batch; the ids in PostgreSQL's notation for arrays."""
    for step_id, ids in tasks:
        for first in range(0, len(ids), MOST_TOGETHER):
            yield step_id, "{" + ",".join(ids[first : first + MOST_TOGETHER]) + "}"
