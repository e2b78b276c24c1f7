"""The verb on groups of collected events, audited."""

from __future__ import annotations

from django.db.transaction import atomic

from taskqueue.core.naming import counted
from taskqueue.core.refusals import refusal as _
from taskqueue.engine.batches.firing import Fired
from taskqueue.engine.batches.firing import fire_group as fire_all
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import TransitionRefused


def fire_group(name: str, group: str, *, by: object = "", reason: str = "") -> list[Fired]:
    """Enqueue the events that a group has collected so far, due or not; return the batches.

    This enqueues at most 500 batches: call it again to continue. Raises `TransitionRefused` if the
    group has no events, or if a worker is just enqueueing them.
    """
    connection = project_connection()
    with atomic(using=connection.alias):
        take_write_lock(connection)
        fired = fire_all(connection, name, group)
        if not fired:
            raise TransitionRefused(_(
                "Group {group!r} of {name} has no events, or a worker is about to enqueue them.",
                group=group, name=name,
            ))  # fmt: skip
        events = sum(batch.events for batch in fired)
        detail = f"group {group!r}: {counted(events, 'event')} in {counted(len(fired), 'task')}"
        audit(connection, "group", "fire", [Act(name, detail=detail)], person=person(by, reason))
    return fired
