"""Deleting events that are too old, or too many."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.events.subscribing import end_overdue
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.statement import Fact
from taskqueue.models import Audience, Event

# Rows of one transaction.
BATCH = 1000
# Of events without numbers some will have them.
HAS_EVENTS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_event WHERE seq IS NOT NULL)
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
        events = Event.objects.using(connection.alias).filter(seq__isnull=False)
        first = [(row.seq or 0, row.at) for row in events.order_by("seq")[:BATCH]]
        oldest = dialect_for(connection).now(connection) - kept["age"] if kept["age"] else None
        least = audience.last_seq - kept["rows"] + 1 if kept["rows"] else 0
        old = [seq for seq, at in first if seq < least or (oldest is not None and at < oldest)]
        if not old:
            return False
        # Numbers rise in the order in which events became visible, which is nearly that of time.
        events.filter(seq__lte=old[-1]).delete()
        rows.update(pruned_seq=old[-1])
        return len(old) == BATCH
