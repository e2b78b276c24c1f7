"""Change when tasks run, and their options; delete them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from taskqueue.core.retries import seconds_of
from taskqueue.declarations.option_kinds import Moment
from taskqueue.declarations.options import check_options
from taskqueue.engine.control.audit import Act
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.mutable_options import apply_changes, check_changes
from taskqueue.engine.notify import wake
from taskqueue.engine.ready import make_due, make_ready
from taskqueue.exceptions import InvalidTask
from taskqueue.models import Task


def run_now_each(selection: Selection) -> dict[UUID, None]:
    """Make those of the tasks ready that wait for their time."""
    tasks = selection.locked()
    if not tasks:
        return {}
    make_ready(_rows(selection, tasks), now=selection.now())
    details = {task: f"was due at {task.run_after.isoformat()}" for task in tasks}
    return _audited(selection, "run_now", details)


def reschedule_each(selection: Selection, *, run_after: Moment) -> dict[UUID, None]:
    """Give those of the tasks that wait another time. Raises `InvalidTask`."""
    now = selection.now()
    due = max(moment_of(run_after, now), now)  # As at an enqueue: in the past it means now.
    tasks = selection.locked()
    if not tasks:
        return {}
    make_due(_rows(selection, tasks), due=due, now=now)
    return _audited(selection, "reschedule", dict.fromkeys(tasks, f"to {due.isoformat()}"))


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


def update_each(selection: Selection, *, changes: Mapping[str, Any]) -> dict[UUID, bool]:
    """Change options of those of the tasks that have not finished; whether that changed anything.

    Raises `InvalidTask` where a change does not fit the task; a bulk verb leaves that task out.
    """
    terms = check_changes(changes)
    details: dict[Task, str] = {}
    for task in selection.locked():
        try:
            details[task] = apply_changes(selection.connection, task, terms)
        except InvalidTask:
            if not selection.is_bulk:
                raise
    changed = {task: detail for task, detail in details.items() if detail}
    if changed:
        _audited(selection, "update", changed)
        # A running one may have to leave its worker, or is pinged at another pace.
        wake(selection.connection, "stop")
    return {task.id: bool(detail) for task, detail in details.items()}


def delete_each(selection: Selection) -> dict[UUID, None]:
    """Delete those of the tasks that have finished, with their attempts and log lines.

    What a schedule says of its run stays, as it does when the task is pruned.
    """
    tasks = selection.locked()
    if not tasks:
        return {}
    # Cascades to leases and log lines, both found by an index. Only ids are read for it: arguments
    # may be large.
    _rows(selection, tasks).only("id").delete()
    acts = [Act(str(task.id), task.status, f"{task.name} on {task.queue_name}") for task in tasks]
    selection.audit("delete", acts)
    return dict.fromkeys(task.id for task in tasks)


def _rows(selection: Selection, tasks: Iterable[Task]) -> QuerySet[Task]:
    return selection.of(task.id for task in tasks).rows()


def _audited(selection: Selection, verb: str, details: Mapping[Task, str]) -> dict[UUID, None]:
    """Audit what was done to the tasks, and have the duties look at their times."""
    acts = [Act(str(task.id), task.status, detail) for task, detail in details.items()]
    selection.audit(verb, acts)
    wake(selection.connection, "")
    return dict.fromkeys(task.id for task in details)
