"""Changing when tasks run, and their options; retrying and deleting tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.refusals import refusal as _
from taskqueue.core.retries import seconds_of
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.options import check_options
from taskqueue.declarations.time_kinds import Moment
from taskqueue.engine import multi_worker
from taskqueue.engine.control.audit import Act
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.mutable_options import NewCall, apply_changes, check_changes
from taskqueue.engine.control.tasks import Ended, end_attempts, lost_among
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import ANYWHERE, STOP, wake
from taskqueue.engine.ready import REOPENED, make_due, make_ready
from taskqueue.exceptions import InvalidTask, TransitionRefused
from taskqueue.models import Occurrence, Task, Workflow
from taskqueue.models.schedule import OccurrenceStatus


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
    due = max(moment_of(run_after, now), now)  # As at an enqueue, a time in the past means now.
    tasks = selection.locked()
    if not tasks:
        return {}
    make_due(_rows(selection, tasks), due=due, now=now)
    return _audited(selection, "reschedule", dict.fromkeys(tasks, f"to {due.isoformat()}"))


def moment_of(given: Moment, now: datetime, *, what: str = "run_after") -> datetime:
    """Return the point in time that a value stands for; `what` names it in errors.

    Raises `InvalidTask`.
    """
    try:
        checked = check_options({"run_after": given}, declared=False)["run_after"]
    except InvalidTask as error:
        raise InvalidTask(str(error).replace("run_after", what, 1)) from None
    if checked is None:
        raise InvalidTask(_("{what} must be an aware datetime or a duration, not None.", what=what))
    if isinstance(checked, datetime):
        return checked
    try:
        return now + timedelta(seconds=seconds_of(checked))
    except OverflowError:
        raise InvalidTask(_(
            "{what} lies too far ahead: {given!r}.", what=what, given=given
        )) from None  # fmt: skip


def update_each(
    selection: Selection,
    *,
    changes: Mapping[str, Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
) -> dict[UUID, bool]:
    """Change the tasks that have not finished. Return for each whether anything changed.

    Raises `InvalidTask` if a change does not fit the task, and `TransitionRefused` if the task is
    running and the change is only for waiting tasks; a bulk verb skips such tasks.
    """
    call = NewCall(args=args, kwargs=kwargs)
    terms = check_changes(changes) if changes or not call.parts else {}
    details: dict[Task, str] = {}
    for task in selection.locked():
        try:
            details[task] = apply_changes(selection.connection, task, terms, call)
        except (InvalidTask, TransitionRefused):
            if not selection.is_bulk:
                raise
    changed = {task: detail for task, detail in details.items() if detail}
    if changed:
        # Wakes the duties too, because a deadline may have come closer.
        _audited(selection, "update", changed)
        # The worker of a running task may have to end it, or to ping more often or less often.
        wake(selection.connection, STOP)
    return {task.id: bool(detail) for task, detail in details.items()}


def delete_each(selection: Selection) -> dict[UUID, None]:
    """Delete those of the tasks that have finished, with their attempts and log lines.

    What a schedule has recorded of its run is kept, as it is when the task is pruned. Tasks of
    workflows are not deleted: the workflow's result is read from them, and they are deleted with
    it.
    """
    tasks = [task for task in selection.locked() if task.step_id is None]
    if not tasks:
        return {}
    # Cascades to leases and log lines, both found by an index. Only ids are read for it, because
    # arguments may be large.
    _rows(selection, tasks).only("id").delete()
    acts = [Act(str(task.id), task.status, f"{task.name} on {task.queue_name}") for task in tasks]
    selection.audit("delete", acts)
    return dict.fromkeys(task.id for task in tasks)


def _rows(selection: Selection, tasks: Iterable[Task]) -> QuerySet[Task]:
    return selection.of(task.id for task in tasks).rows()


def _audited(selection: Selection, verb: str, details: Mapping[Task, str]) -> dict[UUID, None]:
    """Audit the verb on the tasks, and make the duties check their times."""
    acts = [Act(str(task.id), task.status, detail) for task, detail in details.items()]
    selection.audit(verb, acts)
    wake(selection.connection, ANYWHERE)
    return dict.fromkeys(task.id for task in details)


def retry_each(selection: Selection) -> dict[UUID, None]:
    """Run finished tasks again; of a task for several workers, the parts that did not succeed.

    With `running` among the statuses, this includes tasks whose worker is lost, and of tasks of
    workflows only those: another end of such a task would be counted a second time.
    """
    ended: Mapping[UUID, Ended] = {}
    if TaskStatus.RUNNING in selection.statuses:
        running, _ = selection.locked_leases()
        lost, _ = lost_among(selection, running)
        ended = end_attempts(selection, lost, OutcomeKind.FENCED)
    rest = [task_id for task_id in selection.ids if task_id not in ended]
    finished = selection.of(rest, selection.statuses & FINISHED).locked()
    tasks = [
        task
        for task in finished
        if task.step_id is None and not multi_worker.has_all_successes(task)
    ]
    if not (tasks or ended):
        return {}
    # Tasks that no worker runs now become ready; a shared task that other workers run goes on.
    taken = selection.of(ended).locked()
    others_run = [task.id for task in taken if task.status == TaskStatus.RUNNING]
    reopen(selection.connection, [*tasks, *(task for task in taken if task.id not in others_run)])
    selection.of(others_run).rows().update(failures=0, crashes=0)
    acts = [Act(str(task.id), before=task.status) for task in tasks]
    acts += [Act(str(key), TaskStatus.RUNNING.value, end.detail) for key, end in ended.items()]
    selection.audit("retry", acts)
    wake(selection.connection, ANYWHERE)
    return dict.fromkeys([*(task.id for task in tasks), *ended])


def reopen(connection: BaseDatabaseWrapper, tasks: Sequence[Task]) -> None:
    """Make finished tasks ready. Unique keys that they released are not taken back."""
    now = dialect_for(connection).now(connection)
    chosen = Task.objects.using(connection.alias).filter(id__in=[task.id for task in tasks])
    make_ready(chosen, now=now, **REOPENED)
    multi_worker.reopen(connection, tasks)
    reopen_runs(connection, tasks)


def reopen_runs(connection: BaseDatabaseWrapper, runs: Iterable[Task | Workflow]) -> None:
    """Make schedules wait for retried runs again, and note their ends anew."""
    moments: dict[int, list[datetime]] = {}
    for run in runs:
        if run.schedule_id is not None and run.nominal_at is not None:
            moments.setdefault(run.schedule_id, []).append(run.nominal_at)
    for schedule_id, nominal in moments.items():
        rows = Occurrence.objects.using(connection.alias).filter(schedule_id=schedule_id)
        rows.filter(nominal_at__in=nominal, status=OccurrenceStatus.ENDED).update(
            status=OccurrenceStatus.ENQUEUED, task_status="", finished_at=None
        )
