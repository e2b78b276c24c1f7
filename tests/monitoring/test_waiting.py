"""Why a task waits: each reason where it holds, nothing else, from few queries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import control
from taskqueue.models import Task, Worker
from taskqueue.monitoring.waiting import Reason, why_waiting
from taskqueue.states import PENDING, TaskStatus
from tests.engine.test_control import task_that_is
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def worker(name: str = "w1", *, seen_ago: float = 0, **columns: Any) -> None:
    """A worker that was seen so many seconds ago."""
    now = timezone.now()
    Worker.objects.create(
        name=name, host="host", pid=1, started_at=now,
        seen_at=now - timedelta(seconds=seen_ago), **columns,
    )  # fmt: skip


def why(result: Any) -> list[Reason]:
    """The reasons of a task as it stands."""
    return why_waiting(Task.objects.get(id=result.id))


def codes(result: Any) -> list[str]:
    """Their codes."""
    return [reason.code for reason in why(result)]


@pytest.mark.parametrize("status", sorted(frozenset(TaskStatus) - PENDING))
def test_what_runs_or_has_ended_waits_for_nothing(status: TaskStatus) -> None:
    assert why(task_that_is(status)) == []


def test_what_is_ready_waits_in_line_where_a_worker_takes_from_its_queue() -> None:
    result = noop.enqueue()
    assert why(result) == [Reason(code="unserved", subject="default")]
    worker("other", queues={"mail": 1})
    worker("silent", seen_ago=60)
    worker("gone", status="stopped")
    assert codes(result) == ["unserved"]
    worker(queues={"default": 2, "mail": 1})
    assert why(result) == [Reason(code="in_line")]


def test_workers_that_are_quiet_take_nothing() -> None:
    result = noop.enqueue()
    worker("w1", status="quiet")
    worker("w2", status="stopping")
    assert codes(result) == ["not_taking"]
    worker("w3")
    assert codes(result) == ["in_line"]


def test_what_is_not_due_says_until_when() -> None:
    worker()
    scheduled, retrying = task_that_is(TaskStatus.SCHEDULED), task_that_is(TaskStatus.RETRYING)
    for result, code in ((scheduled, "not_due"), (retrying, "retry_due")):
        due = Task.objects.get(id=result.id).run_after
        assert why(result) == [Reason(code=code, moment=due)]


def test_a_paused_queue_holds_it_until_the_pause_is_over() -> None:
    worker()
    result = noop.enqueue()
    control.pause("default")
    assert why(result) == [Reason(code="queue_paused", subject="default")]
    control.pause("default", until=timedelta(minutes=5))
    [reason] = why(result)
    assert reason.moment is not None
    control.resume("default")
    assert codes(result) == ["in_line"]


def test_what_only_certain_workers_may_run_waits_for_these() -> None:
    worker("w1")
    result = noop.using(worker_names=["w2", "w3"]).enqueue()
    assert why(result) == [Reason(code="workers_absent", subject="w2, w3")]
    worker("w3")
    assert codes(result) == ["in_line"]


def test_what_nobody_knows_says_since_when() -> None:
    worker()
    result, since = noop.enqueue(), timezone.now()
    Task.objects.filter(id=result.id).update(parked_at=since)
    assert why(result) == [Reason(code="unknown", subject=noop.name, moment=since)]


def test_what_waits_for_other_tasks_says_so() -> None:
    assert codes(task_that_is(TaskStatus.BLOCKED)) == ["blocked"]


def test_several_reasons_are_all_told_from_two_queries(django_assert_num_queries: Any) -> None:
    control.pause("default")
    result = noop.using(run_after=60).enqueue()
    row = Task.objects.get(id=result.id)
    with django_assert_num_queries(2):
        found = [reason.code for reason in why_waiting(row)]
    assert found == ["not_due", "queue_paused", "unserved"]
