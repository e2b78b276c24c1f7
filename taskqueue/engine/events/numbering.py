"""The pump: number events, and let each cause what subscriptions ask for, in one transaction.

Only one worker does it at a time, whichever: who has the lock of the audience's row. So numbers
have no gaps, rise in the order in which events became visible, and never appear behind a reader.
Each event is numbered once, and each of its effects comes about once, or neither does.

Ids are no such order: of two transactions that overlap, the one that commits first may have the
greater one, and a reader that has come past it would never see the other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

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
# Events of one transaction, and of one that only numbers them: each turn costs a worker some
# milliseconds besides. The first worker has ten turns a second, and more while whole batches of the
# first size are left.
BATCH, PLAIN_BATCH = 1000, 5000

# What anybody wants, as the worker's session is to know it.
WANTED_KINDS = Fact.of("SELECT kinds FROM taskqueue_audience")
HAS_NEW_EVENTS = Fact.of("EXISTS (SELECT 1 FROM taskqueue_event WHERE seq IS NULL)")

LOCK = Statement.of("SELECT last_seq FROM taskqueue_audience {skip_locked}")
# By the partial index of events that have no number yet. On PostgreSQL no other index has their
# ids: each row is found by its place, for nobody else changes or deletes what has no number.
NUMBER = Statement(
    postgresql="""
        WITH fresh AS MATERIALIZED (
            SELECT id, ctid FROM taskqueue_event WHERE seq IS NULL ORDER BY id LIMIT %(limit)s
        ), numbered AS MATERIALIZED (
            SELECT ctid, %(last)s + row_number() OVER (ORDER BY id) AS seq FROM fresh
        )
        UPDATE taskqueue_event AS event
        SET seq = numbered.seq
        FROM numbered
        WHERE event.ctid = numbered.ctid
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
# Streams are read by others; nothing is to be done for them here.
EFFECTIVE = [kind for kind in Subscriber if kind != Subscriber.STREAM]


def pump(connection: BaseDatabaseWrapper, *, limit: int | None = None) -> int:
    """Number the next events, with all that they cause; how many there were.

    None while another worker is at it. Locks: the row of the audience, then what the effects lock.
    """
    with orm_transaction(connection):
        take_write_lock(connection)
        rows = select(connection, LOCK)
        if not rows:
            return 0
        last, subscriptions = rows[0][0], _effective(connection)
        most = (BATCH if subscriptions else PLAIN_BATCH) if limit is None else limit
        number = execute(connection, NUMBER, last=last, limit=most)
        if not number:
            return 0
        execute(connection, MOVE, number=number)
        if subscriptions:
            events = select_rows(connection, Event, NUMBERED, last=last, upto=last + number)
            bring_about(connection, events, subscriptions)
        if is_postgresql(connection):
            notify(connection, str(last + number), channel=CHANNEL)
        return number


def _effective(connection: BaseDatabaseWrapper) -> Sequence[Subscription]:
    rows = Subscription.objects.using(connection.alias).filter(subscriber__in=EFFECTIVE)
    return list(rows.order_by("id"))
