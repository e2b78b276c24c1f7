"""Events of many changes by one statement: the trigger of each row costs more than twice that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.event_kinds import EventKind
from taskqueue.engine.connections import is_in_transaction, transaction
from taskqueue.engine.postgresql.values import numbers
from taskqueue.engine.sessions import NO_EVENTS, WANTED, WANTED_EVENTS
from taskqueue.engine.statement import fetch

# Events of fewer rows cost less by triggers than the two statements do.
LEAST = 10
LEAVE_OUT = f"SELECT set_config('{WANTED_EVENTS}', %s, true)"
# Functions of the migration, made of the same expressions as the triggers. They give the triggers
# back what they leave out.
WRITE = {
    EventKind.TASK_STARTED: "SELECT taskqueue_events_lease_started(%s::bigint[], %s)",
    EventKind.TASK_SUCCEEDED: "SELECT taskqueue_events_task_moved(%s::bigint[], %s)",
}


@contextmanager
def written_together(
    connection: BaseDatabaseWrapper, kind: EventKind, most: int
) -> Iterator[list[int]]:
    """Write the events of a kind that the block's statement causes by one statement behind it.

    The block adds the leases that it has claimed or ended to the list, `most` at most. All is one
    transaction. Triggers do it where the session is shared, or the rows are few.
    """
    leases: list[int] = []
    wanted = connection.settings_dict.get(WANTED, NO_EVENTS).split()
    if most < LEAST or kind not in wanted:
        yield leases
        return
    with nullcontext() if is_in_transaction(connection) else transaction(connection):
        others = " ".join(each for each in wanted if each != kind)
        fetch(connection, LEAVE_OUT, (others or NO_EVENTS,))
        yield leases
        fetch(connection, WRITE[kind], (numbers(leases), " ".join(wanted)))
