"""The pump: number events, and enqueue the tasks that they cause, in one transaction.

Only one worker does it at a time: the one that holds the lock of the audience's row. So numbers
have no gaps, rise in the order in which events became visible, and are never lower than those that
a reader has already seen. Each event is numbered once and has each of its effects once, together.

Ids have no such order: of two overlapping transactions, the one that commits first may have the
greater id, and a reader that has read past it would never see the other event.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import execute, select, select_rows
from taskqueue.engine.events.effects import bring_about
from taskqueue.engine.notify import notify
from taskqueue.engine.sessions import is_postgresql, take_write_lock
from taskqueue.engine.statement import Fact, Statement
from taskqueue.models import Event, Subscription
from taskqueue.models.event import Subscriber

logger = logging.getLogger("taskqueue.engine")

CHANNEL = "taskqueue_events"
# The most events of one transaction, and of one that only numbers events: each turn also costs a
# worker some milliseconds. The first worker has ten turns a second, and more while a turn of the
# first size leaves events behind.
BATCH, PLAIN_BATCH = 1000, 5000

# The kinds that anybody wants, as the worker's session knows them.
WANTED_KINDS = Fact.of("SELECT kinds FROM taskqueue_audience")
HAS_NEW_EVENTS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_event WHERE seq IS NULL)
    OR EXISTS (SELECT 1 FROM taskqueue_eventbatch)
""")

LOCK = Statement.of("SELECT last_seq FROM taskqueue_audience {skip_locked}")
# By the partial index of events that have no number yet. On PostgreSQL no other index contains
# their ids: each row is found by its physical place, because no other session changes or deletes
# unnumbered events. Batches, which SQLite does not have, are replaced by their events. A batch
# larger than the limit is numbered alone. The statement returns how many events there were, and
# whether it saw more.
NUMBER = Statement(
    postgresql="""
        WITH single AS MATERIALIZED (
            SELECT id, ctid FROM taskqueue_event WHERE seq IS NULL ORDER BY id LIMIT %(limit)s
        ), batch AS MATERIALIZED (
            SELECT id, ctid, number FROM taskqueue_eventbatch ORDER BY id LIMIT %(limit)s
        ), fresh AS (
            SELECT id, ctid AS single, NULL::tid AS batch, 1 AS number FROM single
            UNION ALL
            SELECT id, NULL, ctid, number FROM batch
        ), counted AS (
            SELECT *, sum(number) OVER (ORDER BY id) AS upto, row_number() OVER (ORDER BY id) AS row
            FROM fresh
        ), numbered AS MATERIALIZED (
            SELECT single, batch, upto, %(last)s + upto - number AS seq
            FROM counted
            WHERE upto <= %(limit)s OR row = 1
        ), one AS (
            UPDATE taskqueue_event AS event
            SET seq = numbered.seq + 1
            FROM numbered
            WHERE event.ctid = numbered.single
        ), many AS (
            DELETE FROM taskqueue_eventbatch AS event
            USING numbered
            WHERE event.ctid = numbered.batch
            RETURNING numbered.seq, event.*
        ), made AS (
            INSERT INTO taskqueue_event (
                seq, kind, at, task_id, workflow_id, name, queue_name, worker, attempt, details
            )
            SELECT
                many.seq + own.place, kind, at, own.task_id, workflow_id, name, queue_name, worker,
                own.attempt,
                CASE
                    WHEN own.seconds IS NULL THEN details
                    ELSE details || jsonb_build_object('seconds', round(own.seconds::numeric, 3))
                END
            FROM many
            CROSS JOIN LATERAL unnest(many.task_ids, many.attempts, many.seconds)
                WITH ORDINALITY AS own (task_id, attempt, seconds, place)
        )
        SELECT
            COALESCE(max(upto), 0)::bigint, count(*) < (SELECT count(*) FROM fresh)
        FROM numbered
    """,
    sqlite="""
        UPDATE taskqueue_event AS event
        SET seq = numbered.seq
        FROM (
            SELECT id, %(last)s + row_number() OVER (ORDER BY id) AS seq
            FROM (SELECT id FROM taskqueue_event WHERE seq IS NULL ORDER BY id LIMIT %(limit)s)
        ) AS numbered
        WHERE event.id = numbered.id
    """,
)
MOVE = Statement.of("UPDATE taskqueue_audience SET last_seq = last_seq + %(number)s")
NUMBERED = Statement.of("""
    SELECT *
    FROM taskqueue_event
    WHERE seq > %(last)s AND seq <= %(upto)s
    ORDER BY seq
""")
# Other processes read for streams; the pump does nothing for them.
EFFECTIVE = [kind for kind in Subscriber if kind != Subscriber.STREAM]


class Numbered(NamedTuple):
    """The result of one turn."""

    # How many events were numbered.
    number: int
    # Whether visible events may be left, because they exceeded the limit.
    leaves_some: bool


NONE_NUMBERED = Numbered(0, False)


def pump(connection: BaseDatabaseWrapper, *, limit: int | None = None) -> Numbered:
    """Number the next events, and apply their effects.

    Nothing is numbered while another worker does it. Locks: the row of the audience, then the locks
    of the effects.
    """
    with orm_transaction(connection):
        take_write_lock(connection)
        rows = select(connection, LOCK)
        if not rows:
            return NONE_NUMBERED
        last, subscriptions = rows[0][0], _effective(connection)
        most = (BATCH if subscriptions else PLAIN_BATCH) if limit is None else limit
        if is_postgresql(connection):
            ((number, leaves_some),) = select(connection, NUMBER, last=last, limit=most)
        else:
            number, leaves_some = execute(connection, NUMBER, last=last, limit=most), False
        if not number:
            return NONE_NUMBERED
        execute(connection, MOVE, number=number)
        if subscriptions:
            events = select_rows(connection, Event, NUMBERED, last=last, upto=last + number)
            bring_about(connection, events, subscriptions)
        if is_postgresql(connection):
            notify(connection, str(last + number), channel=CHANNEL)
        return Numbered(number, leaves_some or number >= most)


def _effective(connection: BaseDatabaseWrapper) -> Sequence[Subscription]:
    rows = Subscription.objects.using(connection.alias).filter(subscriber__in=EFFECTIVE)
    return list(rows.order_by("id"))
