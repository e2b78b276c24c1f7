"""How many tasks there are of each status."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from taskqueue.core.states import TaskStatus
from taskqueue.monitoring.counts import Count, status_counts
from tests.monitoring.rows import make_running, make_task

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", [status.value for status in TaskStatus])
def test_a_task_counts_for_its_status_alone(status: str) -> None:
    task = make_task(status)
    if status == "running":
        make_running(task=task)
    counts = status_counts()
    assert {name: count.value for name, count in counts.items() if count.value} == {status: 1}
    assert list(counts) == [status.value for status in TaskStatus]


@pytest.mark.parametrize("status", ["ready", "running"])
def test_a_task_that_few_workers_may_take_counts_once(status: str) -> None:
    task = make_task(status, route=1, workers=3, running_leases=2)
    if status == "running":
        for number, worker in enumerate(("w1", "w2")):
            make_running(worker, task=task, is_shared=True, id=number + 1).delete()
        make_running("w3", task=task, is_shared=True)
    assert status_counts()[status] == Count(1)


def test_a_shared_task_that_waits_for_its_next_worker_still_runs() -> None:
    make_task("running", route=1, workers=2, successes=1)
    assert status_counts()["running"] == Count(1)


@pytest.mark.parametrize("status", [status.value for status in TaskStatus])
def test_counting_stops_at_the_cap(status: str) -> None:
    for number in range(4):
        task = make_task(status)
        if status == "running":
            make_running(f"w{number}", task=task)
        if number == 2:
            assert status_counts(cap=3)[status] == Count(3)
    assert status_counts(cap=3)[status] == Count(3, is_capped=True)


def test_a_count_reads_as_people_write_numbers() -> None:
    with override("en"):
        assert [str(Count(42)), str(Count(10_000, is_capped=True))] == ["42", "10,000+"]
