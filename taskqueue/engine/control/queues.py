"""Pause and resume queues: no tasks of a paused queue are claimed, running ones continue."""

from __future__ import annotations

from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet
from django.db.transaction import atomic

from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.option_kinds import Moment
from taskqueue.declarations.options import check_options
from taskqueue.engine import workers
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.changes import moment_of
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import wake
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import InvalidTask, TransitionRefused
from taskqueue.models import Queue


def pause(
    name: str,
    *,
    until: Moment | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Pause a queue: later claims leave its tasks, running tasks continue.

    The queue needs no row before. `until`, a datetime or a duration from now, ends the pause by
    itself. Pausing again replaces time and reason. Raises `InvalidTask` for a name that no queue
    can have, or a time in the past.
    """
    connection = project_connection()
    check_options({"queue_name": name}, declared=False)
    who = person(by, reason)
    with atomic(using=connection.alias):
        workers.remember_queues(connection, [name])
        _require_seen(connection, name, seen)
        now = dialect_for(connection).now(connection)
        ends = None if until is None else moment_of(until, now, what="until")
        if ends is not None and ends <= now:
            raise InvalidTask(f"until must be in the future, not at {ends.isoformat()}.")
        before = _paused(connection, now).filter(name=name).exists()
        Queue.objects.using(connection.alias).filter(name=name).update(
            paused_at=now, paused_until=ends, paused_by=who.by, pause_reason=who.reason
        )
        detail = "" if ends is None else f"until {ends.isoformat()}"
        act = Act(name, "paused" if before else "", detail)
        audit(connection, "queue", "pause", [act], person=who)


def resume(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """End the pause of a queue, and wake the workers.

    Raises `TransitionRefused` if it is not paused.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        _require_seen(connection, name, seen)
        now = dialect_for(connection).now(connection)
        resumed = is_storable(name) and (
            _paused(connection, now)
            .filter(name=name)
            .update(paused_at=None, paused_until=None, paused_by="", pause_reason="")
        )
        if not resumed:
            raise TransitionRefused(_not_paused(connection, name, now))
        audit(connection, "queue", "resume", [Act(name, "paused")], person=who)
        wake(connection, "")


def _require_seen(connection: BaseDatabaseWrapper, name: str, seen: Seen) -> None:
    if seen is not None and is_storable(name):
        take_write_lock(connection)
        rows = Queue.objects.using(connection.alias).filter(name=name)
        for queue in rows.select_for_update():
            require_seen(queue, seen, f"Queue {name!r}")


def _paused(connection: BaseDatabaseWrapper, now: datetime) -> QuerySet[Queue]:
    """The queues that are paused at that moment: a pause whose time is over is none."""
    lasting = Q(paused_until=None) | Q(paused_until__gt=now)
    return Queue.objects.using(connection.alias).filter(lasting, paused_at__isnull=False)


def _not_paused(connection: BaseDatabaseWrapper, name: str, now: datetime) -> str:
    names = _paused(connection, now).values_list("name", flat=True)
    return f"Queue {name!r} is not paused." + did_you_mean(name, list(names))
