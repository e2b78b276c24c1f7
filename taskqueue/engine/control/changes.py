"""Changes to a task that has not finished: when it runs, and on what terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.retries import seconds_of
from taskqueue.declarations.option_kinds import Moment
from taskqueue.declarations.options import check_options
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, Person, audit, person
from taskqueue.engine.control.locking import ALLOWED, Statuses, TaskId, id_of, locked, status_of
from taskqueue.engine.control.mutable_options import apply_terms, check_terms
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import wake
from taskqueue.engine.ready import make_due, make_ready
from taskqueue.exceptions import InvalidTask, TransitionRefused
from taskqueue.models import Task


def run_now(task: TaskId, *, by: object = "", reason: str = "") -> None:
    """Make a task ready that waits for its time.

    Raises `TaskDoesNotExist`, and `TransitionRefused` for one that does not wait.
    """
    task_id = id_of(task)
    connection = project_connection()
    with atomic(using=connection.alias):
        if not run_now_each(connection, [task_id], person=person(by, reason)):
            status = status_of(connection, task_id)
            raise TransitionRefused(
                f"Task {task_id} is {status}; only a scheduled or retrying one can be run now."
            )


def run_now_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses = ALLOWED["run_now"],
    person: Person,
    skip_locked: bool = False,
) -> list[UUID]:
    """Make those of the tasks ready that wait for their time."""
    tasks = locked(connection, ids, statuses, skip_locked=skip_locked)
    if not tasks:
        return []
    now = dialect_for(connection).now(connection)
    make_ready(_rows(connection, tasks), now=now)
    audit(
        connection,
        "task",
        "run_now",
        [Act(str(t.id), t.status, f"was due at {t.run_after.isoformat()}") for t in tasks],
        person=person,
    )
    wake(connection, "")
    return [task.id for task in tasks]


def reschedule(task: TaskId, run_after: Moment, *, by: object = "", reason: str = "") -> None:
    """Give a task that waits another time: a datetime, or a duration from now.

    Raises `TaskDoesNotExist`, `TransitionRefused` for one that does not wait, and `InvalidTask`
    for a time that cannot be.
    """
    task_id = id_of(task)
    connection = project_connection()
    with atomic(using=connection.alias):
        if not reschedule_each(connection, [task_id], run_after, person=person(by, reason)):
            status = status_of(connection, task_id)
            raise TransitionRefused(
                f"Task {task_id} is {status}; only a scheduled, retrying or ready one can be "
                "rescheduled."
            )


def reschedule_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    run_after: Moment,
    *,
    statuses: Statuses = ALLOWED["reschedule"],
    person: Person,
    skip_locked: bool = False,
) -> list[UUID]:
    """Give those of the tasks that wait another time. Raises `InvalidTask`."""
    now = dialect_for(connection).now(connection)
    due = max(moment_of(run_after, now), now)  # As at an enqueue: in the past it means now.
    tasks = locked(connection, ids, statuses, skip_locked=skip_locked)
    if not tasks:
        return []
    make_due(_rows(connection, tasks), due=due, now=now)
    acts = [Act(str(task.id), task.status, f"to {due.isoformat()}") for task in tasks]
    audit(connection, "task", "reschedule", acts, person=person)
    # The duties learn from it when they are needed.
    wake(connection, "")
    return [task.id for task in tasks]


def moment_of(given: Moment, now: datetime, *, what: str = "run_after") -> datetime:
    """The point in time that is meant by what has this name. Raises `InvalidTask`."""
    try:
        checked = check_options({"run_after": given}, declared=False)["run_after"]
    except InvalidTask as error:
        raise InvalidTask(str(error).replace("run_after", what, 1)) from None
    if checked is None:
        raise InvalidTask(f"{what} must be an aware datetime or a duration, not None.")
    if isinstance(checked, datetime):
        return checked
    try:
        return now + timedelta(seconds=seconds_of(checked))
    except OverflowError:
        raise InvalidTask(f"{what} lies too far ahead: {given!r}.") from None


def update(
    task: TaskId,
    changes: Mapping[str, Any],
    *,
    by: object = "",
    reason: str = "",
    seen: Mapping[str, Any] | None = None,
) -> bool:
    """Change the terms of a task that has not finished; whether that changed anything.

    `changes` are options by their names: those of `terms.TERMS`. `worker_names` that now exclude a
    worker end its lease at its next ping, `ping_interval` counts from the next ping, everything
    else from the next claim. `seen` holds columns as the caller has seen them. Raises
    `InvalidTask`, `TaskDoesNotExist` and, for a finished task or one of which somebody has changed
    such a column, `TransitionRefused`.
    """
    task_id = id_of(task)
    connection = project_connection()
    checked = check_terms(changes)
    with atomic(using=connection.alias):
        tasks = locked(connection, [task_id], ALLOWED["update"])
        if not tasks:
            status = status_of(connection, task_id)
            raise TransitionRefused(f"Task {task_id} has {status}; its terms matter no more.")
        for name, value in (seen or {}).items():
            if getattr(tasks[0], name) != value:
                raise TransitionRefused(f"Somebody has changed {name} of task {task_id} meanwhile.")
        detail = apply_terms(connection, tasks[0], checked)
        _tell_updated(connection, {tasks[0]: detail}, person(by, reason))
        return bool(detail)


def update_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    changes: Mapping[str, Any],
    *,
    statuses: Statuses = ALLOWED["update"],
    person: Person,
    skip_locked: bool = False,
) -> list[UUID]:
    """Change the terms of those of the tasks that have not finished, and allow for them."""
    checked = check_terms(changes)
    details: dict[Task, str] = {}
    for task in locked(connection, ids, statuses, skip_locked=skip_locked):
        try:
            details[task] = apply_terms(connection, task, checked)
        except InvalidTask:  # What is right for most may not fit this one.
            continue
    _tell_updated(connection, details, person)
    return [task.id for task in details]


def _tell_updated(
    connection: BaseDatabaseWrapper, details: Mapping[Task, str], person: Person
) -> None:
    acts = [Act(str(task.id), task.status, detail) for task, detail in details.items() if detail]
    if acts:
        audit(connection, "task", "update", acts, person=person)
        wake(connection, "")
        # A running one may have to leave its worker, or is pinged at another pace.
        wake(connection, "stop")


def _rows(connection: BaseDatabaseWrapper, tasks: Sequence[Task]) -> Any:
    return Task.objects.using(connection.alias).filter(id__in=[task.id for task in tasks])
