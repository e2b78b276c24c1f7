"""In which order a worker takes tasks, within a queue and from several."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from taskqueue.models import Lease, Queue, Task
from tests.conftest import Drain, StartWorker
from tests.sample import tasks
from tests.sample.models import Effect
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow


def claims() -> list[list[str]]:
    """The queues of the leased tasks, claim by claim."""
    queues = dict(Task.objects.values_list("id", "queue_name"))
    order = Lease.objects.order_by("claimed_at", "id").values_list("claimed_at", "task_id")
    batches: dict[object, list[str]] = {}
    for claimed_at, task_id in order:
        batches.setdefault(claimed_at, []).append(queues[task_id])
    return list(batches.values())


def fill(**counts: int) -> None:
    for queue_name, count in counts.items():
        tasks.noop.using(queue_name=queue_name).enqueue_many([((), {})] * count)


def test_full_queues_are_served_by_their_weights(start_worker: StartWorker) -> None:
    fill(critical=6800, default=3800, low=1800)
    worker = start_worker("--queues", "critical=6,default=3,low=1", "--concurrency", "1")

    wait_until(lambda: Lease.objects.count() >= 10_000, 300, what="10,000 claims")
    worker.terminate()
    worker.wait()

    batches = claims()
    first = [queue_name for batch in batches for queue_name in batch][:10_000]
    shares = {name: count / len(first) for name, count in Counter(first).items()}
    assert shares == pytest.approx({"critical": 0.6, "default": 0.3, "low": 0.1}, abs=0.05)
    assert_each_is_served_within(100, batches[: len(batches) // 2])


def assert_each_is_served_within(limit: int, batches: list[list[str]]) -> None:
    for queue_name in ("critical", "default", "low"):
        waited = 0
        for batch in batches:
            waited = 0 if queue_name in batch else waited + 1
            assert waited < limit, f"{queue_name} waited for {waited} claims"


def test_single_claims_follow_the_weights_closely(drain: Drain) -> None:
    """With nothing claimed ahead, each claim is one task: no queue waits for more than a round."""
    fill(critical=60, default=30, low=10)

    drain("--queues", "critical=6,default=3,low", "--concurrency", "1", settings={"CLAIM_AHEAD": 0})

    order = [queue_name for batch in claims() for queue_name in batch]
    for start in range(0, 100, 10):
        counts = Counter(order[start : start + 10])
        assert counts == {"critical": 6, "default": 3, "low": 1}


def test_an_empty_queue_leaves_its_share_to_the_others(drain: Drain) -> None:
    fill(default=200)

    drain("--queues", "critical=1000,default")

    assert Task.objects.filter(status="succeeded").count() == 200


def test_strict_drains_the_queues_in_the_given_order(drain: Drain) -> None:
    fill(last=200, first=200, middle=200)

    drain("--queues", "first,middle,last", "--strict", "--concurrency", "1")

    order = [queue_name for batch in claims() for queue_name in batch]
    assert order == ["first"] * 200 + ["middle"] * 200 + ["last"] * 200


def test_a_worker_without_a_choice_serves_every_queue(drain: Drain) -> None:
    fill(**{f"queue-{number}": 5 for number in range(40)})

    drain()

    assert Task.objects.filter(status="succeeded").count() == 200
    assert Queue.objects.count() == 40


def test_a_worker_without_a_choice_serves_queues_that_appear_later(
    start_worker: StartWorker,
) -> None:
    start_worker()

    for number in range(3):
        result = tasks.noop.using(queue_name=f"new-{number}").enqueue()
        assert result.wait(60).status == "succeeded"


def test_a_worker_leaves_other_queues_alone(drain: Drain) -> None:
    fill(mine=20, others=20)

    drain("--queues", "mine")

    assert Task.objects.filter(queue_name="mine", status="succeeded").count() == 20
    assert Task.objects.filter(queue_name="others", status="ready", attempt=0).count() == 20


@pytest.mark.parametrize("ahead", [0, "auto"])
def test_tasks_start_by_priority_then_due_time_then_age(drain: Drain, ahead: int | str) -> None:
    late = tasks.mark.using(run_after=3600).enqueue("late")
    first_in = [tasks.mark.enqueue(f"age {number}") for number in range(3)]
    low = tasks.mark.using(priority=-5).enqueue("low")
    high = tasks.mark.using(priority=5).enqueue("high")
    # Due before all others of its priority, though it was enqueued last.
    early = tasks.mark.enqueue("early")
    Task.objects.filter(id=early.id).update(
        run_after=first_in[0].enqueued_at - timedelta(days=9000)
    )
    # Due after all others of its priority, though it was enqueued first.
    make_ready(late.id, due_at=early.enqueued_at + timedelta(milliseconds=1))

    drain("--concurrency", "1", settings={"CLAIM_AHEAD": ahead})

    expected = [high, early, *first_in, late, low]
    # What the bodies wrote, one after the other: `started_at` is an age that a batch reports, and
    # two batches may take a few milliseconds longer or less on their way.
    started = Effect.objects.order_by("id").values_list("task_id", flat=True)
    assert list(started) == [result.id for result in expected]


def make_ready(task_id: object, *, due_at: datetime) -> None:
    """As a promotion does it once that time has come."""
    updated = Task.objects.filter(id=task_id).update(status="ready", run_after=due_at)
    assert updated == 1
