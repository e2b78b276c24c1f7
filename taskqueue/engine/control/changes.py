"""Change when tasks run, and their options; delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.retries import seconds_of
from taskqueue.declarations.option_kinds import Moment
from taskqueue.declarations.options import check_options
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.control.locking import Statuses, locked
from taskqueue.engine.control.mutable_options import apply_changes, check_changes
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import wake
from taskqueue.engine.ready import make_due, make_ready
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Task


def run_now_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses,
    person: Person,
    skip_locked: bool = False,
) -> dict[UUID, None]:
    """Make those of the tasks ready that wait for their time."""
    tasks = locked(connection, ids, statuses, skip_locked=skip_locked)
    if not tasks:
        return {}
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
    return dict.fromkeys(task.id for task in tasks)


def reschedule_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    run_after: Moment,
    *,
    statuses: Statuses,
    person: Person,
    skip_locked: bool = False,
) -> dict[UUID, None]:
    """Give those of the tasks that wait another time. Raises `InvalidTask`."""
    now = dialect_for(connection).now(connection)
    due = max(moment_of(run_after, now), now)  # As at an enqueue: in the past it means now.
    tasks = locked(connection, ids, statuses, skip_locked=skip_locked)
    if not tasks:
        return {}
    make_due(_rows(connection, tasks), due=due, now=now)
    acts = [Act(str(task.id), task.status, f"to {due.isoformat()}") for task in tasks]
    audit(connection, "task", "reschedule", acts, person=person)
    # The duties learn from it when they are needed.
    wake(connection, "")
    return dict.fromkeys(task.id for task in tasks)


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


def update_one(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    changes: Mapping[str, Any],
    *,
    statuses: Statuses,
    person: Person,
) -> dict[UUID, bool]:
    """Change options of a task that has not finished; whether that changed anything.

    Raises `InvalidTask` where a change does not fit the task.
    """
    terms = check_changes(changes)
    tasks = locked(connection, ids, statuses)
    details = {task: apply_changes(connection, task, terms) for task in tasks}
    return _updated(connection, details, person)


def update_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    changes: Mapping[str, Any],
    *,
    statuses: Statuses,
    person: Person,
    skip_locked: bool = False,
) -> dict[UUID, bool]:
    """Change options of those of the tasks that have not finished and that the changes fit."""
    terms = check_changes(changes)
    details: dict[Task, str] = {}
    for task in locked(connection, ids, statuses, skip_locked=skip_locked):
        try:
            details[task] = apply_changes(connection, task, terms)
        except InvalidTask:  # A change that fits most tasks may not fit this one.
            continue
    return _updated(connection, details, person)


def _updated(
    connection: BaseDatabaseWrapper, details: Mapping[Task, str], person: Person
) -> dict[UUID, bool]:
    acts = [Act(str(task.id), task.status, detail) for task, detail in details.items() if detail]
    if acts:
        audit(connection, "task", "update", acts, person=person)
        wake(connection, "")
        # A running one may have to leave its worker, or is pinged at another pace.
        wake(connection, "stop")
    return {task.id: bool(detail) for task, detail in details.items()}


def delete_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses,
    person: Person,
    skip_locked: bool = False,
) -> dict[UUID, None]:
    """Delete those of the tasks that have finished, with their attempts and log lines.

    What a schedule says of its run stays, as it does when the task is pruned.
    """
    tasks = locked(connection, ids, statuses, skip_locked=skip_locked)
    if not tasks:
        return {}
    # Cascades to leases and log lines, both found by an index. Only ids are read for it: arguments
    # may be large.
    _rows(connection, tasks).only("id").delete()
    acts = [Act(str(task.id), task.status, f"{task.name} on {task.queue_name}") for task in tasks]
    audit(connection, "task", "delete", acts, person=person)
    return dict.fromkeys(task.id for task in tasks)


def _rows(connection: BaseDatabaseWrapper, tasks: Sequence[Task]) -> Any:
    return Task.objects.using(connection.alias).filter(id__in=[task.id for task in tasks])
