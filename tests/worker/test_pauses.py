"""Workers while a definition, or everything, is paused: they leave it, and come back at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from taskqueue.control import pause_all, pause_definition, resume_all, resume_definition
from taskqueue.models import Lease, Pause, Task
from tests.conftest import Drain, StartWorker
from tests.sample import tasks

pytestmark = pytest.mark.slow


def test_a_drain_leaves_tasks_of_a_paused_definition_and_exits(drain: Drain) -> None:
    tasks.noop.enqueue_many([((), {})] * 50)
    tasks.add.enqueue_many([((1, 2), {})] * 50)
    pause_definition(tasks.noop.name)
    drain()
    statuses = Task.objects.order_by().values_list("name", "status").distinct()
    assert set(statuses) == {(tasks.noop.name, "ready"), (tasks.add.name, "succeeded")}


def test_a_drain_ends_while_everything_is_paused(drain: Drain) -> None:
    tasks.noop.enqueue_many([((), {})] * 5)
    pause_all()
    drain()
    assert Task.objects.filter(status="ready").count() == 5


@pytest.mark.parametrize("is_all", [False, True])
def test_a_resume_wakes_the_workers(is_all: bool, start_worker: StartWorker) -> None:
    start_worker("--concurrency", "1")
    assert tasks.noop.enqueue().wait(timeout=60).status == "succeeded"
    if is_all:
        pause_all()
    else:
        pause_definition(tasks.noop.name)
    paused = tasks.noop.enqueue()
    other = tasks.add.enqueue(1, 2)
    if not is_all:
        assert other.wait(timeout=60).status == "succeeded"
    assert Task.objects.get(id=paused.id).status == "ready"
    if is_all:
        resume_all()
    else:
        resume_definition(tasks.noop.name)
    assert paused.wait(timeout=60).status == "succeeded"
    assert other.wait(timeout=60).status == "succeeded"


def test_a_pause_with_an_end_ends_by_itself(start_worker: StartWorker) -> None:
    pause_all(until=timedelta(seconds=2))
    ends = Pause.objects.get().paused_until
    paused = tasks.noop.enqueue()
    start_worker("--concurrency", "1")
    assert paused.wait(timeout=60).status == "succeeded"
    assert Lease.objects.get(task_id=paused.id).claimed_at >= ends
