"""Deleting events that are too old, or too many."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.events.subscribing import end_overdue
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.statement import Fact
from taskqueue.models import Audience, Event

# Rows of one transaction.
BATCH = 2000
# By the numbers, for the entries of deleted events stay in the index for a while.
HAS_EVENTS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_audience WHERE last_seq > pruned_seq)
    OR EXISTS (SELECT 1 FROM taskqueue_subscription)
""")


def prune_events(connection: BaseDatabaseWrapper) -> bool:
    """Delete the first events that are past `EVENTS_KEPT`; whether there may be more of them.

    Readers that stand behind what was deleted are told, for the last number is kept. Also ends
    subscriptions that were not renewed. Locks: the row of the audience.
    """
    kept = get_settings().EVENTS_KEPT
    with orm_transaction(connection):
        take_write_lock(connection)
        end_overdue(connection)
        rows = Audience.objects.using(connection.alias)
        audience = rows.select_for_update(skip_locked=True).first()
        if audience is None:
            return False
        # Behind what was deleted before: its entries of the index may still be there.
        events = Event.objects.using(connection.alias).filter(seq__gt=audience.pruned_seq)
        first: list[Any] = list(events.order_by("seq").values_list("seq", "at", named=True)[:BATCH])
        oldest = dialect_for(connection).now(connection) - kept["age"] if kept["age"] else None
        least = audience.last_seq - kept["rows"] + 1 if kept["rows"] else 0
        # Numbers rise in the order in which events became visible, which is nearly that of time: an
        # old one of a long transaction waits until those before it are old too.
        old = list(takewhile(lambda row: row.seq < least or (oldest and row.at < oldest), first))
        if not old:
            return False
        events.filter(seq__lte=old[-1].seq).delete()
        rows.update(pruned_seq=old[-1].seq)
        return len(old) == BATCH
