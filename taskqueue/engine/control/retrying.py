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
from taskqueue.engine.control.abandoned import EndedByHand, end_attempts, ended_words, lost_among
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.control.locking import Statuses, locked, locked_leases
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import wake
from taskqueue.engine.ready import make_ready
from taskqueue.models import Occurrence, Task
from taskqueue.models.occurrence import OccurrenceStatus


def retry_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses,
    person: Person,
    skip_locked: bool = False,
) -> dict[UUID, None]:
    """Run those of the tasks again that have finished; of shared ones what had no success.

    With `running` among the statuses also those whose worker is lost.
    """
    ended: Mapping[UUID, EndedByHand] = {}
    if TaskStatus.RUNNING in statuses:
        running, _ = locked_leases(connection, ids, skip_locked=skip_locked)
        lost, _ = lost_among(connection, running, skip_locked=skip_locked)
        ended = end_attempts(connection, lost, OutcomeKind.FENCED)
    rest = [task_id for task_id in ids if task_id not in ended]
    finished = locked(connection, rest, statuses & FINISHED, skip_locked=skip_locked)
    tasks = [task for task in finished if not multi_worker.has_all_successes(task)]
    if not (tasks or ended):
        return {}
    acts = [Act(str(task.id), before=task.status) for task in tasks]
    words = ended_words(ended)
    acts += [Act(str(each), TaskStatus.RUNNING.value, words[each]) for each in ended]
    # What no worker has by now is ready; a shared one that others run goes on.
    taken = locked(connection, list(ended), frozenset(TaskStatus))
    others_run = [task for task in taken if task.status == TaskStatus.RUNNING]
    reopen(connection, [*tasks, *(task for task in taken if task not in others_run)])
    rows = Task.objects.using(connection.alias)
    rows.filter(id__in=[task.id for task in others_run]).update(failures=0, crashes=0)
    audit(connection, "task", "retry", acts, person=person)
    wake(connection, "")
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
