"""Pause, resume and delete queues. A paused queue's running tasks continue."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.options import check_options
from taskqueue.declarations.time_kinds import Moment
from taskqueue.engine import workers
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.changes import moment_of
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.limits import lift_limit
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.control.unknown_names import unknown_queue, warn_of_unknown
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.queue_tasks import Found, unfinished_in
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import InvalidTask, QueueDoesNotExist, TransitionRefused
from taskqueue.models import Queue, Rollup, Worker
from taskqueue.models.worker import WorkerStatus

# A queue without a row is listed by what its tasks came to for so long, and a little longer.
LISTED_FOR = timedelta(hours=2)
# The most tasks of each status, of all queues, that are searched for those of a deleted queue.
MOST_LOOKED = 100_000


def pause(
    name: str,
    *,
    until: Moment | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Pause a queue: later claims take none of its tasks, running tasks continue.

    The queue needs no row: a warning is logged for an unknown name. `until`, a datetime or a
    duration from now, ends the pause automatically. Pausing again replaces time and reason. Raises
    `InvalidTask` for an impossible name, or a time in the past.
    """
    connection = project_connection()
    check_options({"queue_name": name}, declared=False)
    who = person(by, reason)
    with atomic(using=connection.alias):
        workers.remember_queues(connection, [name])
        queue, now = _locked(connection, name, seen)
        ends = None if until is None else moment_of(until, now, what="until")
        if ends is not None and ends <= now:
            raise InvalidTask(_(
                "until must be in the future, not at {ends}.", ends=ends.isoformat()
            ))  # fmt: skip
        before = "paused" if queue is not None and queue.is_paused_at(now) else ""
        Queue.objects.using(connection.alias).filter(name=name).update(
            paused_at=now, paused_until=ends, paused_by=who.by, pause_reason=who.reason,
            deleted_at=None,
        )  # fmt: skip
        act = Act(name, before, "" if ends is None else f"until {ends.isoformat()}")
        audit(connection, "queue", "pause", [act], person=who)
    if hint := unknown_queue(connection, name):
        warn_of_unknown("Queue paused that is unknown name=%s hint=%s", name, hint)


def resume(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """End the pause of a queue, and wake the workers.

    Raises `TransitionRefused` if it is not paused.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        queue, now = _locked(connection, name, seen)
        rows = Queue.objects.using(connection.alias)
        if queue is None or not queue.is_paused_at(now):
            paused = [row.name for row in rows.exclude(paused_at=None) if row.is_paused_at(now)]
            hint = did_you_mean(name, paused)
            raise TransitionRefused(_("Queue {name!r} is not paused.{hint}", name=name, hint=hint))
        rows.filter(name=name).update(
            paused_at=None, paused_until=None, paused_by="", pause_reason=""
        )
        audit(connection, "queue", "resume", [Act(name, "paused")], person=who)
        wake(connection, ANYWHERE)


def delete_queue(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Delete a queue with its pause and its limit; finished tasks are kept.

    Raises `QueueDoesNotExist`, and `TransitionRefused` while it has unfinished tasks or a live
    worker serves it by name. A queue exists again with its next task. It also reappears within a
    minute if it had a task that this overlooked: only the newest 100,000 tasks of each status, of
    all queues, are searched, and an enqueue may commit at the same time. If not all tasks were
    searched, a queue with a pause or a limit is not deleted, because its tasks might run without
    them.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        queue, now = _locked(connection, name, seen)
        rows = Queue.objects.using(connection.alias)
        left = unfinished_in(connection, name, most=MOST_LOOKED) if is_storable(name) else Found()
        if left.number:
            one = _(
                "Queue {name!r} has 1 task that has not finished. Let it finish, or cancel it "
                "first.",
                name=name,
            )
            many = _(
                "Queue {name!r} has {count:,} tasks that have not finished. Let them finish, or "
                "cancel them.",
                name=name, count=left.number,
            )  # fmt: skip
            raise TransitionRefused(one if left.number == 1 else many)
        if queue is None and has_ended_lately(connection, name, now):
            workers.remember_queues(connection, [name])
            queue = rows.get(name=name)
        if queue is None or queue.deleted_at is not None:
            known = rows.filter(deleted_at=None).values_list("name", flat=True)
            hint = did_you_mean(name, list(known[:1000]))
            raise QueueDoesNotExist(_("There is no queue {name!r}.{hint}", name=name, hint=hint))
        if serving := _serving_by_name(connection, name, now):
            raise TransitionRefused(_(
                "Worker {worker!r} serves queue {name!r} by its name. Stop it, or change its "
                "queues first.",
                worker=serving[0], name=name,
            ))  # fmt: skip
        if not left.is_whole and (queue.is_paused_at(now) or queue.limiter_id is not None):
            raise TransitionRefused(_(
                "Queue {name!r} may have tasks that have not finished: too many wait in all queues "
                "to tell. Resume it and lift its limit first.",
                name=name,
            ))  # fmt: skip
        if queue.limiter_id is not None:
            lift_limit(connection, queue)
        before = "paused" if queue.is_paused_at(now) else ""
        rows.filter(id=queue.id).update(
            deleted_at=now, paused_at=None, paused_until=None, paused_by="", pause_reason=""
        )
        audit(connection, "queue", "delete", [Act(name, before)], person=who)


def has_ended_lately(connection: BaseDatabaseWrapper, name: str, now: datetime) -> bool:
    """Return whether attempts of a queue ended within the hour for which that keeps it listed."""
    rollups = Rollup.objects.using(connection.alias).filter(starts_at__gte=now - LISTED_FOR)
    return is_storable(name) and rollups.filter(queue_name=name).exists()


def _serving_by_name(connection: BaseDatabaseWrapper, name: str, now: datetime) -> list[str]:
    """Return the live workers that name this queue among those that they serve."""
    live = Worker.objects.using(connection.alias).exclude(
        status__in=[WorkerStatus.STOPPED, WorkerStatus.LOST]
    )
    rows = live.only("name", "queues", "seen_at", "lease_seconds").order_by("name")
    return [row.name for row in rows if name in row.queues and not row.is_silent(now)]


def _locked(
    connection: BaseDatabaseWrapper, name: str, seen: Seen
) -> tuple[Queue | None, datetime]:
    """Lock the queue, if it has a row, as the caller saw it. Return it with the time."""
    take_write_lock(connection)
    rows = Queue.objects.using(connection.alias).filter(name=name)
    queue = rows.select_for_update().first() if is_storable(name) else None
    if queue is not None:
        require_seen(queue, seen, _("Queue {name!r}", name=name))
    return queue, dialect_for(connection).now(connection)
