"""Tasks that not every worker may take: who may claim them, and when."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.apart import claim_apart, look_apart
from taskqueue.engine.connections import transaction
from taskqueue.engine.rows import Claimed
from taskqueue.models import Lease, Queue, Task, Worker
from taskqueue.results import TaskResult
from tests.engine.steps import LEASE, claim, end
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)


def take(worker: str, *, limit: int = 10, queue: str = "default", **options: Any) -> list[Claimed]:
    connection = connections["default"]
    with transaction(connection):
        return claim_apart(
            connection,
            worker=worker,
            queue_names=[queue],
            unknown=options.pop("unknown", ()),
            limit=limit,
            lease_duration=LEASE,
        )


def row(result: TaskResult[Any]) -> Task:
    return Task.objects.get(id=result.id)


def alive(name: str, **changes: Any) -> None:
    now = timezone.now()
    values = {"host": "h", "pid": 1, "started_at": now, "seen_at": now, **changes}
    Worker.objects.create(name=name, **values)


def test_the_ordinary_claim_leaves_them_out() -> None:
    add.using(workers=2).enqueue(1)
    add.using(worker_names=["w1"]).enqueue(1)
    add.using(broadcast=True).enqueue(1)
    assert claim() == []


def test_distinct_workers_take_a_task_up_to_its_number() -> None:
    result = add.using(workers=2).enqueue(1)
    [first] = take("a")
    assert take("a") == []
    [second] = take("b")
    assert take("c") == []
    assert (first.attempt, second.attempt) == (1, 2)
    task = row(result)
    assert (task.status, task.open_slots, task.running_leases) == ("running", 0, 2)


def test_a_shared_task_succeeds_when_all_its_workers_have() -> None:
    result = add.using(workers=2).enqueue(1)
    [first], [second] = take("a"), take("b")
    assert end(second, OutcomeKind.SUCCEEDED, return_value="2") == "running"
    assert end(first, OutcomeKind.SUCCEEDED, return_value="1") == "succeeded"
    result.refresh()
    assert result.return_value == [2, 1]
    assert take("c") == []


def test_a_worker_that_has_succeeded_does_not_run_it_again() -> None:
    add.using(workers=2).enqueue(1)
    [first] = take("a")
    end(first, OutcomeKind.SUCCEEDED)
    assert take("a") == []
    assert len(take("b")) == 1


def test_a_failed_attempt_frees_its_place_for_others_at_once() -> None:
    result = add.using(workers=2, max_attempts=3).enqueue(1)
    [first] = take("a")
    assert end(first, OutcomeKind.FAILED, error_class="x.Y", delay=0.0) == "running"
    lease = Lease.objects.get(id=first.lease_id)
    assert lease.retry_at
    assert lease.finished_at
    waits = lease.retry_at - lease.finished_at
    assert timedelta(seconds=2.9) < waits < timedelta(seconds=4)
    # Three seconds may pass until somebody looks.
    Lease.objects.filter(id=first.lease_id).update(retry_at=lease.retry_at + timedelta(hours=1))
    assert take("a") == []
    assert len(take("b")) == 1
    Lease.objects.filter(id=first.lease_id).update(retry_at=timezone.now())
    assert len(take("a")) == 1
    assert row(result).failures == 1


def test_exhausted_failures_fail_it_once_nobody_runs_it() -> None:
    result = add.using(workers=3).enqueue(1)
    [first], [second] = take("a"), take("b")
    assert end(first, OutcomeKind.FAILED, error_class="x.Y", error_message="no") == "running"
    assert take("c") == []
    assert end(second, OutcomeKind.SUCCEEDED, return_value="7") == "failed"
    task = row(result)
    assert (task.error_class, task.error_message, task.successes) == ("x.Y", "no", 1)
    assert Lease.objects.get(id=second.lease_id).return_value == 7


def test_a_second_failure_does_not_open_it_again() -> None:
    result = add.using(workers=3, max_attempts=2).enqueue(1)
    leases = [take(name)[0] for name in "abc"]
    end(leases[0], OutcomeKind.FAILED, error_class="x.Y")
    assert row(result).open_slots == 1
    end(leases[1], OutcomeKind.FAILED, error_class="x.Z")
    assert row(result).open_slots == 0
    assert end(leases[2], OutcomeKind.LOST, error_class="x.L") == "failed"


def test_losses_are_counted_apart_and_bounded() -> None:
    result = add.using(workers=2, max_crashes=2).enqueue(1)
    [first] = take("a")
    assert end(first, OutcomeKind.LOST) == "running"
    [second] = take("b")
    assert end(second, OutcomeKind.LOST) == "failed"
    assert (row(result).crashes, row(result).failures) == (2, 0)


def test_an_unstarted_attempt_gives_its_slot_back_without_a_lease() -> None:
    result = add.using(workers=2).enqueue(1)
    [first] = take("a")
    assert end(first, OutcomeKind.UNSTARTED) == "ready"
    task = row(result)
    assert (task.attempt, task.open_slots, task.running_leases) == (0, 2, 0)
    assert not Lease.objects.exists()
    assert len(take("a")) == 1


def test_only_named_workers_may_take_it() -> None:
    result = add.using(worker_names=["a", "b"]).enqueue(1)
    assert take("c") == []
    [claimed] = take("b")
    assert take("a") == []
    assert end(claimed, OutcomeKind.SUCCEEDED, return_value="2") == "succeeded"
    result.refresh()
    assert result.return_value == 2


def test_a_named_task_is_retried_as_any_other() -> None:
    add.using(worker_names=["a"], max_attempts=2).enqueue(1)
    [claimed] = take("a")
    assert end(claimed, OutcomeKind.FAILED, delay=0.0) == "retrying"
    assert take("a") == []


def test_named_tasks_go_first_among_equals_only() -> None:
    ordinary = add.using(priority=5).enqueue(1)
    low = add.using(worker_names=["a"], priority=4).enqueue(1)
    equal = add.using(worker_names=["a"], priority=5).enqueue(1)
    shared = add.using(workers=2, priority=5).enqueue(1)
    assert [each.task_id for each in take("a")] == [str(equal.id)]
    assert [each.task_id for each in claim()] == [str(ordinary.id)]
    assert [each.task_id for each in take("a")] == [str(shared.id), str(low.id)]


def test_tasks_pinned_to_others_are_not_even_seen() -> None:
    add.using(worker_names=["absent"]).enqueue_many([((n,), {}) for n in range(5)])
    assert look_apart(connections["default"], worker="a")[0] == []
    assert look_apart(connections["default"], worker="absent")[0] == ["default"]


def test_a_broadcast_is_seated_with_the_workers_that_live_on_its_queue() -> None:
    alive("a")
    alive("b", queues={"default": 1})
    alive("other", queues={"mail": 1})
    alive("silent", seen_at=timezone.now() - timedelta(minutes=5))
    alive("gone", status="stopped")
    result = add.using(broadcast=True).enqueue(1)
    [first] = take("a")
    assert row(result).worker_names == ["a", "b"]
    assert take("late") == []
    [second] = take("b")
    assert end(first, OutcomeKind.SUCCEEDED, return_value="1") == "running"
    assert end(second, OutcomeKind.SUCCEEDED, return_value="2") == "succeeded"


def test_one_part_that_fails_does_not_keep_the_others_from_theirs() -> None:
    alive("a")
    alive("b")
    result = add.using(broadcast=True).enqueue(1)
    [first] = take("a")
    assert end(first, OutcomeKind.FAILED, error_class="x.Y") == "running"
    assert take("a") == []
    [second] = take("b")
    assert end(second, OutcomeKind.SUCCEEDED) == "failed"
    assert row(result).error_class == "x.Y"


def test_a_paused_queue_gives_none() -> None:
    add.using(workers=2).enqueue(1)
    Queue.objects.create(name="default", paused_at=timezone.now())
    assert take("a") == []
    Queue.objects.update(paused_until=timezone.now() - timedelta(seconds=1))
    assert len(take("a")) == 1


def test_a_delay_or_a_key_works_for_them_too() -> None:
    result = add.using(workers=2, unique_key="k", run_after=60).enqueue(1)
    assert add.using(workers=2, unique_key="k").enqueue(1) == result
    assert result.status == "scheduled"
    assert take("a") == []
