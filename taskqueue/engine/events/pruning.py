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

# The most rows of one transaction.
BATCH = 2000
# By number, because index entries of deleted events remain for a while.
HAS_EVENTS = Fact.of("""
    EXISTS (SELECT 1 FROM taskqueue_audience WHERE last_seq > pruned_seq)
    OR EXISTS (SELECT 1 FROM taskqueue_subscription)
""")


def prune_events(connection: BaseDatabaseWrapper) -> bool:
    """Delete the first events that are past `EVENTS_KEPT`. Return whether there may be more.

    A reader of deleted events gets an error, because the last deleted number is stored. It also
    ends subscriptions that were not renewed. Locks: the row of the audience.
    """
    kept = get_settings().EVENTS_KEPT
    with orm_transaction(connection):
        take_write_lock(connection)
        end_overdue(connection)
        rows = Audience.objects.using(connection.alias)
        audience = rows.select_for_update(skip_locked=True).first()
        if audience is None:
            return False
        # Start after the events deleted before: their index entries may remain.
        events = Event.objects.using(connection.alias).filter(seq__gt=audience.pruned_seq)
        numbered = events.order_by("seq").values_list("seq", "at", named=True)
        first: list[Any] = list(numbered[:BATCH])
        now = dialect_for(connection).now(connection)
        oldest = now - kept["age"] if kept["age"] else None
        least = audience.last_seq - kept["rows"] + 1 if kept["rows"] else 0

        def is_past(row: Any) -> bool:
            return bool(row.seq < least or (oldest and row.at < oldest))

        # Numbers rise in the order in which events became visible, which is nearly that of time: an
        # old event of a long transaction waits until those before it are old too. A time in the
        # future, as after the clock was set back, says nothing: its event goes with the next one.
        looked_at = list(takewhile(lambda row: is_past(row) or row.at > now, first))
        is_whole = len(looked_at) == BATCH
        upto = max((row.seq for row in looked_at if is_past(row)), default=None)
        if upto is None and is_whole:
            timed = numbered.filter(at__lte=now).first()
            upto = looked_at[-1].seq if timed and is_past(timed) else None
        if upto is None:
            return False
        events.filter(seq__lte=upto).delete()
        rows.update(pruned_seq=upto)
        return is_whole
