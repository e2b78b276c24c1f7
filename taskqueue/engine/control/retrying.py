"""Retry: what has finished runs again, and so does what a lost worker holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine import multi_worker
from taskqueue.engine.control.audit import Act
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.tasks import Ended, end_attempts, lost_among
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import wake
from taskqueue.engine.ready import make_ready
from taskqueue.models import Occurrence, Task
from taskqueue.models.occurrence import OccurrenceStatus


def retry_each(selection: Selection) -> dict[UUID, None]:
    """Run those of the tasks again that have finished; of shared ones what had no success.

    With `running` among the statuses also those whose worker is lost.
    """
    ended: Mapping[UUID, Ended] = {}
    if TaskStatus.RUNNING in selection.statuses:
        running, _ = selection.locked_leases()
        lost, _ = lost_among(selection, running)
        ended = end_attempts(selection, lost, OutcomeKind.FENCED)
    rest = [task_id for task_id in selection.ids if task_id not in ended]
    finished = selection.of(rest, selection.statuses & FINISHED).locked()
    tasks = [task for task in finished if not multi_worker.has_all_successes(task)]
    if not (tasks or ended):
        return {}
    # What no worker has by now is ready; a shared one that others run goes on.
    taken = selection.of(ended).locked()
    others_run = [task.id for task in taken if task.status == TaskStatus.RUNNING]
    reopen(selection.connection, [*tasks, *(task for task in taken if task.id not in others_run)])
    selection.of(others_run).rows().update(failures=0, crashes=0)
    acts = [Act(str(task.id), before=task.status) for task in tasks]
    acts += [Act(str(key), TaskStatus.RUNNING.value, end.detail) for key, end in ended.items()]
    selection.audit("retry", acts)
    wake(selection.connection, "")
    return dict.fromkeys([*(task.id for task in tasks), *ended])


def reopen(connection: BaseDatabaseWrapper, tasks: Sequence[Task]) -> None:
    """Make finished tasks ready. A unique key that was released is not taken back."""
    now = dialect_for(connection).now(connection)
    chosen = Task.objects.using(connection.alias).filter(id__in=[task.id for task in tasks])
    make_ready(
        chosen,
        now=now,
        attempts_before_retry=F("attempt"),
        failures=0,
        crashes=0,
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
    multi_worker.reopen(connection, tasks)
    _reopen_runs(connection, tasks)


def _reopen_runs(connection: BaseDatabaseWrapper, tasks: Iterable[Task]) -> None:
    """Let schedules wait for retried runs again, and note their ends anew."""
    moments: dict[int, list[datetime]] = {}
    for task in tasks:
        if task.schedule_id is not None and task.nominal_at is not None:
            moments.setdefault(task.schedule_id, []).append(task.nominal_at)
    for schedule_id, nominal in moments.items():
        runs = Occurrence.objects.using(connection.alias).filter(schedule_id=schedule_id)
        runs.filter(nominal_at__in=nominal, status=OccurrenceStatus.ENDED).update(
            status=OccurrenceStatus.ENQUEUED, task_status="", finished_at=None
        )
