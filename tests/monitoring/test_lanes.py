"""What waits and runs in each queue, and who serves it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from taskqueue.models import Queue, Rollup
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.read_models.queue import (
    ShownQueue,
    queue_named,
    queues_after,
    read_queues,
)
from tests.monitoring.rows import (
    HOUR,
    MINUTE,
    ago,
    make_rollup,
    make_running,
    make_task,
    make_worker,
    within_a_minute,
)

pytestmark = pytest.mark.django_db


def lane(name: str = "default") -> ShownQueue:
    """The queue of that name."""
    (found,) = [queue for queue in read_queues() if queue.name == name]
    return found


def test_an_idle_queue_shows_nought() -> None:
    Queue.objects.create(name="default")
    make_worker()
    found = lane()
    assert (found.waiting_count, found.oldest_seconds, found.running) == (Count(0), None, 0)
    assert (found.slots, found.is_served, found.is_paused) == (4, True, False)
    assert found.finished_lately == [0] * 12


def test_no_queue_is_no_row() -> None:
    assert read_queues() == []


def test_a_queue_that_a_worker_names_is_found_before_its_first_task() -> None:
    make_worker(queues={"mail": 1})
    found = queue_named("mail")
    assert found is not None
    assert (found.waiting, found.is_served) == (0, True)
    assert queue_named("mial") is None
    make_worker("gone", queues={"old": 1}, seen_at=ago(HOUR))
    make_task(queue_name="web")
    assert [queue.name for queue in read_queues()] == ["mail", "web"]
    assert [queue.name for queue in queues_after("a", limit=9)] == ["mail", "web"]
    assert [queue.name for queue in queues_after("mail", limit=9)] == ["web"]


def test_ready_tasks_wait_in_their_queue_though_nobody_has_seen_it() -> None:
    for name in ("a", "b", "b", "c"):
        make_task(queue_name=name)
    for status in ("scheduled", "retrying", "succeeded", "running", "blocked"):
        make_task(status, queue_name="d")
    assert {queue.name: queue.waiting for queue in read_queues()} == {
        "a": 1,
        "b": 2,
        "c": 1,
    }


def test_the_oldest_is_found_behind_tasks_of_any_priority() -> None:
    make_task(priority=5, run_after=ago(MINUTE))
    make_task(priority=0, run_after=ago(HOUR))
    make_task(priority=0, run_after=ago(MINUTE))
    make_task(priority=-7, run_after=ago(2 * MINUTE))
    make_task(queue_name="web", priority=5, run_after=ago(2 * HOUR))
    make_task(queue_name="web", priority=-5, run_after=ago(MINUTE))
    assert lane().oldest_seconds == pytest.approx(3600, abs=60)
    assert lane("web").oldest_seconds == pytest.approx(7200, abs=60)
    assert (lane().waiting, lane("web").waiting) == (4, 2)


def test_tasks_that_few_workers_may_take_wait_too() -> None:
    make_task(run_after=ago(MINUTE))
    make_worker("w1")
    make_task(route=1, pinned_to="w1", worker_names=["w1"], run_after=ago(HOUR))
    make_task(route=1, workers=2, queue_name="web", run_after=ago(MINUTE))
    make_task("running", route=1, workers=2, queue_name="web")
    assert (lane().waiting, lane("web").waiting) == (2, 1)
    assert lane().oldest_seconds == pytest.approx(3600, abs=60)


def test_tasks_for_absent_workers_count_as_waiting_but_unreachable() -> None:
    make_worker("there", queues={"web": 1})
    make_worker("quiet", status="quiet")
    make_worker("gone", seen_at=ago(HOUR))
    for names in (["gone"], ["quiet", "unheard of"], ["there"]):
        make_task(route=1, worker_names=names, run_after=ago(HOUR))
    assert (lane().waiting, lane().reachable_seconds) == (3, None)
    assert lane().oldest_seconds == pytest.approx(3600, abs=60)
    make_task(route=1, worker_names=["gone", "there"], queue_name="web", run_after=ago(MINUTE))
    web = lane("web")
    assert web.oldest_seconds == web.reachable_seconds == pytest.approx(60, abs=40)


def test_attempts_that_failed_within_a_quarter_of_an_hour_are_counted() -> None:
    make_rollup(ago(MINUTE), succeeded=6, failed=3, lost=1, stopped=2)
    make_rollup(ago(9 * MINUTE), succeeded=1, failed=1)
    make_rollup(ago(16 * MINUTE), failed=100)
    assert (lane().attempts_recently, lane().failed_recently) == (14, 5)


def test_the_count_stops_sooner_where_there_are_many_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("taskqueue.monitoring.read_models.queue.COUNTED", 6)
    monkeypatch.setattr("taskqueue.monitoring.read_models.queue.LEAST_CAP", 2)
    for name in ("a", "b"):
        Queue.objects.create(name=name)
    for name in "a" * 3 + "b" * 4:
        make_task(queue_name=name)
    assert [queue.waiting_count for queue in read_queues()] == [Count(3), Count(3, is_capped=True)]


def test_only_so_many_queues_are_read() -> None:
    for name in ("d", "c", "b", "a"):
        make_task(queue_name=name)
    Queue.objects.create(name="e")
    assert [queue.name for queue in read_queues(limit=2)] == ["a", "b"]


def test_running_tasks_are_counted_up_to_the_slots_of_their_workers() -> None:
    make_worker(concurrency=2)
    for _ in range(3):
        make_running()
    make_running(task=make_task("running", queue_name="web"))
    assert (lane().running, lane().slots) == (2, 2)
    assert (lane("web").running, lane("web").slots) == (1, 2)


def test_slots_are_those_of_the_workers_that_live_and_take_from_the_queue() -> None:
    Queue.objects.create(name="default")
    make_worker("all", concurrency=1)
    make_worker("this", concurrency=2, queues={"default": 1})
    make_worker("other", concurrency=4, queues={"web": 1})
    make_worker("quiet", concurrency=8, status="quiet")
    make_worker("gone", concurrency=16, seen_at=ago(HOUR))
    assert (lane().slots, lane().is_served) == (3, True)


def test_a_queue_that_no_worker_takes_from_is_not_served() -> None:
    make_worker("other", queues={"web": 1})
    make_running("gone")
    make_task()
    found = lane()
    assert (found.is_served, found.slots, found.running) == (False, 0, 1)


def test_a_pause_tells_who_and_why_and_ends_by_itself() -> None:
    until = timezone.now() + HOUR
    Queue.objects.create(
        name="default", paused_at=ago(MINUTE), paused_until=until, paused_by="ann", pause_reason="x"
    )
    Queue.objects.create(name="web", paused_at=ago(HOUR), paused_until=ago(MINUTE), paused_by="ann")
    found = lane()
    assert (found.is_paused, found.paused_by, found.pause_reason) == (True, "ann", "x")
    assert found.paused_until == until
    over = lane("web")
    assert (over.is_paused, over.paused_at, over.paused_until, over.paused_by) == (
        False, None, None, "",
    )  # fmt: skip


def test_recent_attempts_are_those_of_the_last_quarter_of_an_hour() -> None:
    def recently() -> tuple[int, int]:
        Rollup.objects.all().delete()
        this_minute = timezone.now().replace(second=0, microsecond=0)
        for number in range(25):
            make_rollup(this_minute - number * MINUTE, succeeded=2, failed=1)
        found = lane()
        return found.attempts_recently, found.failed_recently

    # The minute that is not over, and fifteen before it.
    assert within_a_minute(recently) == (48, 16)


def test_tasks_that_finished_lately_are_counted_by_five_minutes() -> None:
    Queue.objects.create(name="default")

    def lately() -> tuple[list[int], int]:
        Rollup.objects.all().delete()
        now = timezone.now()
        current = now - timedelta(
            minutes=now.minute % 5, seconds=now.second, microseconds=now.microsecond
        )
        make_rollup(current, tasks_succeeded=1, tasks_failed=2, tasks_cancelled=4, succeeded=100)
        make_rollup(current - timedelta(minutes=5), tasks_succeeded=8, name="shop.tasks.pack")
        make_rollup(current - timedelta(minutes=1), tasks_succeeded=16, resolution=60)
        make_rollup(current - timedelta(minutes=55), tasks_succeeded=32)
        make_rollup(current - timedelta(minutes=56), tasks_succeeded=64)
        make_rollup(current, tasks_succeeded=128, queue_name="web")
        return lane().finished_lately, lane("web").finished_lately[-1]

    assert within_a_minute(lately) == ([32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 7], 128)
