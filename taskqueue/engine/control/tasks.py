"""Cancel, ask to stop, retry: what ends a task by hand, and what starts it again.

Each verb comes in a pair: for one task, loud when it is refused, and for each of many, which gives
those that it was done to. The latter stand in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F
from django.db.transaction import atomic, set_rollback

from taskqueue.conf import get_settings
from taskqueue.engine import shared
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, Person, audit, person
from taskqueue.engine.control.locking import (
    ALLOWED,
    Statuses,
    TaskId,
    id_of,
    locked,
    locked_leases,
    status_of,
)
from taskqueue.engine.control.retention import prune_after
from taskqueue.engine.limits import Limits
from taskqueue.engine.notify import wake
from taskqueue.engine.tally import count_by_hand
from taskqueue.engine.wording import wording_for
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Lease, Occurrence, Task
from taskqueue.models.occurrence import OccurrenceStatus
from taskqueue.states import FINISHED, PENDING, TaskStatus

TRIES = 10
"""How often a cancel follows a task that starts and ends as it looks."""


def cancel(task: TaskId, *, by: object = "", reason: str = "") -> str:
    """Cancel a task: one that waits ends now, a running one is asked to stop.

    Returns the status that the task has then. Raises `TaskDoesNotExist`, and
    `TransitionRefused` for a finished task.
    """
    task_id = id_of(task)
    connection = project_connection()
    for _ in range(TRIES):
        with atomic(using=connection.alias):
            done = cancel_each(connection, [task_id], person=person(by, reason))
            if not done:
                # A task that was claimed meanwhile is locked by now. In a transaction of the
                # caller it would stay so, and who records it has its lease, which comes first.
                set_rollback(True, using=connection.alias)
        if task_id in done:
            return done[task_id]
        status = status_of(connection, task_id)
        if status in FINISHED:
            raise TransitionRefused(f"Task {task_id} is {status}, and cannot be cancelled.")
    raise TransitionRefused(f"Task {task_id} changed {TRIES} times while it was cancelled.")


def cancel_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses = ALLOWED["cancel"],
    person: Person,
    skip_locked: bool = False,
) -> dict[UUID, str]:
    """Of those in these statuses, ask what runs and cancel what waits; their statuses then.

    Locks: leases first, then tasks, as who records them does. `skip_locked` leaves out
    those that somebody else has.
    """
    asked = request_stop_each(
        connection, ids, statuses=statuses, person=person, skip_locked=skip_locked
    )
    rest = [task_id for task_id in ids if task_id not in asked]
    waiting = locked(connection, rest, PENDING & statuses, skip_locked=skip_locked)
    if waiting:
        _end_as_cancelled(connection, waiting, reason=person.reason)
        acts = [Act(str(task.id), before=task.status) for task in waiting]
        audit(connection, "cancel", acts, person=person)
    return asked | {task.id: TaskStatus.CANCELLED.value for task in waiting}


def _end_as_cancelled(
    connection: BaseDatabaseWrapper, tasks: Sequence[Task], *, reason: str
) -> None:
    now = wording_for(connection).now(connection)
    Task.objects.using(connection.alias).filter(id__in=[task.id for task in tasks]).update(
        status=TaskStatus.CANCELLED,
        finished_at=now,
        error_message=reason,
        prune_after=prune_after(now, get_settings().RETENTION["cancelled"]),
        holds_unique_key=models.Case(
            models.When(unique_for__in=("kept", "duration"), then=F("holds_unique_key")),
            default=False,
        ),
    )
    cancelled = TaskStatus.CANCELLED.value
    count_by_hand(connection, ended=[(task.queue_name, task.name, cancelled) for task in tasks])


def request_stop(task: TaskId, *, by: object = "", reason: str = "") -> str:
    """Ask a running task to stop: it is told, after a grace interrupted, after another killed.

    Returns its status, which is `running` until it has stopped. Who asked first is remembered.
    Raises `TaskDoesNotExist`, and `TransitionRefused` for a task that is not running.
    """
    task_id = id_of(task)
    connection = project_connection()
    for _ in range(TRIES):
        with atomic(using=connection.alias):
            asked = request_stop_each(connection, [task_id], person=person(by, reason))
        if task_id in asked:
            return asked[task_id]
        status = status_of(connection, task_id)
        if status != TaskStatus.RUNNING:
            raise TransitionRefused(
                f"Task {task_id} is {status}; only a running one is asked to stop."
                + (" cancel() ends one that waits." if status in PENDING else "")
            )
    raise TransitionRefused(f"Task {task_id} changed {TRIES} times while it was asked to stop.")


def request_stop_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses = ALLOWED["stop"],
    person: Person,
    skip_locked: bool = False,
) -> dict[UUID, str]:
    """Ask the attempts that run of these tasks to stop; the statuses of the tasks that have any.

    A task of several workers takes no further ones; if nobody runs it, it ends as cancelled. Who
    asked first is remembered, who asks later is audited.
    """
    if TaskStatus.RUNNING not in statuses:
        return {}
    running, missed = locked_leases(connection, ids, skip_locked=skip_locked)
    _ask(connection, running, person)
    asked = {lease.task_id: TaskStatus.RUNNING.value for lease in running}
    limits = Limits.of(get_settings())
    rest = [task_id for task_id in ids if task_id not in missed]
    closed = shared.close(connection, rest, limits=limits, reason=person.reason)
    # A worker may have taken one in between. Its lease is not waited for: the task is held by now.
    late, _ = locked_leases(connection, list(closed), skip_locked=True)
    _ask(connection, late, person)
    # Those that waited for a next worker have no attempt that could be asked.
    idle = {each: "" for each in closed if each not in asked}
    audit(
        connection,
        "stop",
        [
            Act(str(each), TaskStatus.RUNNING.value, detail)
            for each, detail in (_asked_anew(running, person) | idle).items()
        ],
        person=person,
    )
    return asked | closed


def _ask(connection: BaseDatabaseWrapper, leases: Iterable[Lease], person: Person) -> None:
    """Ask the attempts of locked leases to stop, but for those that were asked before."""
    unasked = [lease.id for lease in leases if lease.stop_requested_at is None]
    rows = Lease.objects.using(connection.alias).filter(id__in=unasked, stop_requested_at=None)
    if unasked and rows.update(
        stop_requested_at=wording_for(connection).now(connection),
        stop_requested_by=person.by,
        stop_reason=person.reason,
    ):
        wake(connection, "stop")


def _asked_anew(running: Iterable[Lease], person: Person) -> dict[UUID, str]:
    """The tasks for which this person is one more that asks, with who did before."""
    details: dict[UUID, str] = {}
    for lease in running:
        if lease.stop_requested_at is None:
            details[lease.task_id] = ""
        elif lease.stop_requested_by != person.by:
            details.setdefault(lease.task_id, f"asked before by {lease.stop_requested_by!r}")
    return details


def retry(task: TaskId, *, by: object = "", reason: str = "") -> None:
    """Run a finished task again, its failures and crashes forgotten, its attempts counted on.

    Raises `TaskDoesNotExist`, and `TransitionRefused` for a task that is not finished.
    """
    task_id = id_of(task)
    connection = project_connection()
    with atomic(using=connection.alias):
        if not retry_each(connection, [task_id], person=person(by, reason)):
            status = status_of(connection, task_id)
            if status in FINISHED:
                raise TransitionRefused(
                    f"All workers of task {task_id} have succeeded: enqueue it again instead."
                )
            raise TransitionRefused(f"Task {task_id} is {status}; only a finished one is retried.")


def retry_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses = ALLOWED["retry"],
    person: Person,
    skip_locked: bool = False,
) -> list[UUID]:
    """Run those of the tasks again that have finished; of shared ones what had no success."""
    finished = locked(connection, ids, statuses, skip_locked=skip_locked)
    tasks = [task for task in finished if not shared.has_all_successes(task)]
    if not tasks:
        return []
    reopen(connection, tasks)
    acts = [Act(str(task.id), before=task.status) for task in tasks]
    audit(connection, "retry", acts, person=person)
    wake(connection, "")
    return [task.id for task in tasks]


def reopen(connection: BaseDatabaseWrapper, tasks: Sequence[Task]) -> None:
    """Make finished tasks ready. A unique key that was released is not taken back."""
    now = wording_for(connection).now(connection)
    chosen = Task.objects.using(connection.alias).filter(id__in=[task.id for task in tasks])
    chosen.update(
        status=TaskStatus.READY,
        attempts_before_retry=F("attempt"),
        failures=0,
        crashes=0,
        run_after=now,
        ready_at=now,
        parked_at=None,
        started_at=None,
        finished_at=None,
        prune_after=None,
        return_value=None,
        error_class="",
        error_message="",
        deadline_at=None,
        expires_at=None,
    )
    shared.reopen(connection, tasks)
    _reopen_runs(connection, tasks)


def _reopen_runs(connection: BaseDatabaseWrapper, tasks: Iterable[Task]) -> None:
    """What a schedule thinks has ended goes on: later runs heed it, its end is noted anew."""
    moments: dict[int, list[datetime]] = {}
    for task in tasks:
        if task.schedule_id is not None and task.nominal_at is not None:
            moments.setdefault(task.schedule_id, []).append(task.nominal_at)
    for schedule_id, nominal in moments.items():
        runs = Occurrence.objects.using(connection.alias).filter(schedule_id=schedule_id)
        runs.filter(nominal_at__in=nominal, status=OccurrenceStatus.ENDED).update(
            status=OccurrenceStatus.ENQUEUED, task_status="", finished_at=None
        )
