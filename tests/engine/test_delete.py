"""Delete by hand: what has finished goes with all that belongs to it, and the audit tells."""

from __future__ import annotations

import pytest

from taskqueue import TaskDoesNotExist, TransitionRefused, schedules
from taskqueue.control import TaskFilter, cancel, delete, delete_many, dry_run
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.models import Audit, Lease, Occurrence, Task, TaskLog
from taskqueue.rules import Every
from tests.engine.steps import past, task_of
from tests.engine.test_control import task_that_is
from tests.sample.tasks import add, noop, unique

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_a_finished_task_goes_with_its_attempts_and_log_lines(status: TaskStatus) -> None:
    result, other = task_that_is(status), add.enqueue(1)
    for task_id in (result.id, other.id):
        TaskLog.objects.create(task_id=task_id, attempt=1, logged_at=past(), level=20, message="m")
    attempts = Lease.objects.exclude(task_id=result.id).count()
    Audit.objects.all().delete()
    delete(result.id, by="anna", reason="of no use")
    assert list(Task.objects.values_list("id", flat=True)) == [other.id]
    assert Lease.objects.count() == attempts
    assert list(TaskLog.objects.values_list("task_id", flat=True)) == [other.id]
    line = Audit.objects.get()
    assert (line.verb, line.subject, line.before) == ("delete", str(result.id), status)
    assert (line.actor, line.reason) == ("anna", "of no use")


@pytest.mark.parametrize("status", sorted(frozenset(TaskStatus) - FINISHED))
def test_an_unfinished_task_cannot_be_deleted(status: TaskStatus) -> None:
    result = task_that_is(status)
    before = Audit.objects.count()
    with pytest.raises(
        TransitionRefused, match=rf"is {status}\. Only finished tasks can be deleted"
    ):
        delete(result.id)
    assert task_of(result).status == status
    assert Audit.objects.count() == before


def test_a_missing_task_cannot_be_deleted() -> None:
    result = noop.enqueue()
    result.cancel()
    delete(result)
    for missing in (result, "no-id"):
        with pytest.raises(TaskDoesNotExist):
            delete(missing)


def test_a_unique_key_is_free_once_its_holder_is_deleted() -> None:
    holder = unique.using(unique_for="kept").enqueue("a")
    holder.cancel()
    assert not unique.using(unique_for="kept").enqueue("a").created
    delete(holder)
    assert unique.using(unique_for="kept").enqueue("a").created


def test_the_run_of_a_schedule_stays_known_when_its_task_is_deleted() -> None:
    schedules.create("hourly", task=noop.name, rule=Every(3600))
    run = schedules.run_now("hourly")
    assert run.task_id is not None
    cancel(run.task_id)
    delete(run.task_id)
    assert Occurrence.objects.get(id=run.id).task_id == run.task_id


def test_many_are_deleted_and_the_others_counted_as_refused() -> None:
    finished = [noop.enqueue() for _ in range(3)]
    for each in finished:
        each.cancel()
    waiting = noop.enqueue()
    every = TaskFilter(name=noop.name)
    assert dry_run(every, "delete") == (4, 3)
    outcome = delete_many(every, by="anna", reason="all")
    assert (outcome.matched, outcome.done, outcome.refused) == (4, 3, 1)
    assert [task.id for task in Task.objects.all()] == [waiting.id]
    assert Audit.objects.filter(verb="delete", actor="anna", reason="all").count() == 3
