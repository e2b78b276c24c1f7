"""Overriding limits, limiting queues, and releasing halted sequences."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic, on_commit

from taskqueue.core.refusals import refusal as _
from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.limits import MOST_A_WINDOW, MOST_AT_ONCE
from taskqueue.declarations.options import check_options
from taskqueue.declarations.placement import limiter_of, partition_of
from taskqueue.declarations.rates import RateOf, rate_of
from taskqueue.engine import workers
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import Seen, TaskId, id_of, require_seen
from taskqueue.engine.control.unknown_names import unknown_queue, warn_of_unknown
from taskqueue.engine.limits.changing import look_again
from taskqueue.engine.limits.placing import take_places
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import InvalidTask, LimitDoesNotExist, TaskDoesNotExist, TransitionRefused
from taskqueue.models import Limit, Limiter, Partition, Queue, Task
from taskqueue.models.limit import PartitionState, Per

NO_PARTITION = UUID(int=0)


def name_of_queue(queue_name: str) -> str:
    """Return the name of the limit of a queue."""
    return f"queue:{queue_name}"


def limit_queue(
    name: str,
    *,
    concurrency: int | None = None,
    rate: str | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Limit how many tasks of a queue run at once, and how many start in every window.

    The limit applies to all waiting tasks, and to every claim after this has committed. Running
    tasks take their places at once; tasks that were just being claimed take theirs within some
    seconds. With neither number, the limit is removed. A warning is logged for an unknown name.
    Raises `InvalidTask`.
    """
    check_options({"queue_name": name}, declared=False)
    number, parsed = _checked(concurrency, rate)
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        workers.remember_queues(connection, [name])
        queue = Queue.objects.using(connection.alias).select_for_update().get(name=name)
        require_seen(queue, seen, _("Queue {name!r}", name=name))
        limit = Limit.objects.using(connection.alias).filter(name=name_of_queue(name)).first()
        before = "" if limit is None or queue.limiter_id is None else words_of(limit)
        if number is None and parsed is None:
            if queue.limiter_id is None:
                raise TransitionRefused(_("Queue {name!r} has no limit.", name=name))
            lift_limit(connection, queue)
            after = "none"
        else:
            after = words_of(_set(connection, queue, number, parsed))
        audit(
            connection,
            "queue",
            "limit",
            [Act(name, detail=f"{before or 'none'} to {after}")],
            person=who,
        )
        wake(connection, ANYWHERE)
    if hint := unknown_queue(connection, name):
        warn_of_unknown("Queue limited that is unknown name=%s hint=%s", name, hint)


def override_limit(
    name: str,
    *,
    concurrency: int | None = None,
    rate: str | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> None:
    """Override the numbers that the code declares; with a concurrency of 0, all tasks wait.

    Numbers that are not given stay as they are. Running tasks are not stopped. Raises
    `LimitDoesNotExist`, and `InvalidTask` if the limit has no such number.
    """
    number, parsed = _checked(concurrency, rate, least=0)
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        limit = _locked(connection, name, seen)
        if number is None and parsed is None:
            raise InvalidTask(_("Give a concurrency or a rate."))
        if number is not None and limit.concurrency is None:
            told = _("Limit {name} is one of a rate: it has no concurrency.", name=name)
            raise InvalidTask(told, path=("concurrency",))
        if parsed is not None and limit.rate is None:
            told = _("Limit {name} is one of concurrency: it has no rate.", name=name)
            raise InvalidTask(told, path=("rate",))
        before = words_of(limit)
        if number is not None:
            limit.concurrency_override = number
        if parsed is not None:
            limit.rate_override, limit.seconds_override = parsed
        _changed(connection, limit)
        act = Act(name, detail=f"{before} to {words_of(limit)}")
        audit(connection, "limit", "set", [act], person=who)
        wake(connection, ANYWHERE)


def reset_limit(name: str, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Restore the numbers that the code declares.

    Raises `LimitDoesNotExist`, and `TransitionRefused` if they are not overridden.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        limit = _locked(connection, name, seen)
        before = words_of(limit)
        if limit.concurrency_override is None and limit.rate_override is None:
            raise TransitionRefused(_("Limit {name} is as the code declares it.", name=name))
        limit.concurrency_override = limit.rate_override = limit.seconds_override = None
        _changed(connection, limit)
        act = Act(name, detail=f"{before} to {words_of(limit)}")
        audit(connection, "limit", "reset", [act], person=who)
        wake(connection, ANYWHERE)


def release_sequence(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Let a halted sequence continue after its failed task.

    `task` is the failed task, or one that waits behind it. Raises `TaskDoesNotExist`, and
    `TransitionRefused` if its sequence is not halted.
    """
    connection = project_connection()
    who = person(by, reason)
    id = id_of(task)
    with atomic(using=connection.alias):
        take_write_lock(connection)
        row = Task.objects.using(connection.alias).filter(id=id).first()
        if row is None:
            raise TaskDoesNotExist(_("There is no task {task_id}.", task_id=id))
        require_seen(row, seen, _("Task {task}", task=id))
        rows = Partition.objects.using(connection.alias).filter(id=row.partition or NO_PARTITION)
        partition = rows.select_for_update().first()
        if partition is None or partition.state != PartitionState.HALTED:
            raise TransitionRefused(
                _("Task {task_id} is in no sequence that is halted.", task_id=id)
            )
        rows.update(holder=None, state=PartitionState.OPEN)
        act = Act(str(id), row.status, f"behind task {partition.holder}")
        audit(connection, "task", "release", [act], person=who)
        wake(connection, ANYWHERE)


def is_halted(task: Task) -> bool:
    """Return whether the sequence of a task is halted, so that it can be released."""
    if task.partition is None or "sequence" not in (task.limits or {}):
        return False
    rows = Partition.objects.using(project_connection().alias)
    return rows.filter(id=task.partition, state=PartitionState.HALTED).exists()


def words_of(limit: Limit) -> str:
    """Return the current numbers in words."""
    numbers = {
        "concurrency": _held(limit.concurrency_override, limit.concurrency),
        "rate": _held(limit.rate_override, limit.rate),
    }
    seconds = _held(limit.seconds_override, limit.seconds)
    words = []
    if numbers["concurrency"] is not None:
        words.append(f"concurrency {numbers['concurrency']}")
    if numbers["rate"] is not None:
        words.append(f"rate {numbers['rate']} in {seconds:g} s")
    return ", ".join(words)


def _held(override: Any, declared: Any) -> Any:
    return declared if override is None else override


def _checked(
    concurrency: int | None, rate: str | None, *, least: int = 1
) -> tuple[int | None, RateOf | None]:
    number = concurrency
    if number is not None:
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if not is_whole or not least <= number <= MOST_AT_ONCE:
            raise InvalidTask(_(
                "concurrency must be a whole number from {least} to {most_at_once:,}, not "
                "{number!r}.",
                least=least, most_at_once=MOST_AT_ONCE, number=number,
            ), path=("concurrency",))  # fmt: skip
    parsed = None if rate is None else rate_of("rate", rate, most=MOST_A_WINDOW)
    return number, parsed


def _locked(connection: BaseDatabaseWrapper, name: str, seen: Seen) -> Limit:
    """Lock a limit that the code declares, and require that it is as the caller saw it."""
    take_write_lock(connection)
    rows = Limit.objects.using(connection.alias).exclude(per=Per.QUEUE)
    limit = rows.select_for_update().filter(name=name).first()
    if limit is None:
        hint = did_you_mean(name, list(rows.values_list("name", flat=True)[:1000]))
        raise LimitDoesNotExist(_("There is no limit {name!r}.{hint}", name=name, hint=hint))
    require_seen(limit, seen, _("Limit {name}", name=name))
    return limit


def _changed(connection: BaseDatabaseWrapper, limit: Limit) -> None:
    """Save a limit, and have everything that waits for it checked again."""
    limit.save(using=connection.alias)
    look_again(connection, limit)


def _set(
    connection: BaseDatabaseWrapper, queue: Queue, number: int | None, parsed: RateOf | None
) -> Limit:
    name = name_of_queue(queue.name)
    rate, seconds = parsed or (None, None)
    rows = Limit.objects.using(connection.alias)
    limit, _ = rows.update_or_create(
        name=name,
        defaults={"per": Per.QUEUE, "concurrency": number, "rate": rate, "seconds": seconds},
    )
    limiter = limiter_of(name, "")
    Limiter.objects.using(connection.alias).get_or_create(
        id=limiter, defaults={"limit_id": limit.id, "key": ""}
    )
    Queue.objects.using(connection.alias).filter(id=queue.id).update(
        limiter_id=limiter, deleted_at=None
    )
    Partition.objects.using(connection.alias).update_or_create(
        id=partition_of(queue.name, None),
        defaults={
            "queue_name": queue.name,
            "limiters": [],
            "state": PartitionState.OPEN,
            "waits_for": None,
            "opens_at": None,
        },
    )
    take_places(connection, queue.name)
    # Again for claims that were under way and knew nothing of the limit. The sweep finds anything
    # that comes even later.
    on_commit(partial(_take_places_again, queue.name), using=connection.alias, robust=True)
    _changed(connection, limit)
    return limit


def _take_places_again(queue_name: str) -> None:
    connection = project_connection()
    with atomic(using=connection.alias):
        take_write_lock(connection)
        take_places(connection, queue_name)


def lift_limit(connection: BaseDatabaseWrapper, queue: Queue) -> None:
    """Remove the limit of a locked queue, in the caller's transaction."""
    alias, limiter = connection.alias, limiter_of(name_of_queue(queue.name), "")
    Queue.objects.using(alias).filter(id=queue.id).update(limiter_id=None)
    partitions = Partition.objects.using(alias)
    partitions.filter(id=partition_of(queue.name, None)).delete()
    # The session that holds the limiter may still close partitions for it. A session that waits for
    # it holds open partitions, and finds that it is gone. Slots are deleted with their leases.
    limiters = Limiter.objects.using(alias).filter(id=limiter)
    list(limiters.select_for_update())
    waiting = partitions.filter(waits_for=limiter).select_for_update(skip_locked=True)
    partitions.filter(id__in=list(waiting.values_list("id", flat=True))).update(
        state=PartitionState.OPEN, waits_for=None
    )
    limiters.delete()
    Limit.objects.using(alias).filter(name=name_of_queue(queue.name)).delete()
