"""A claim takes ready tasks, each once, in the order of their queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import TaskStatus
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.forecast import ready_queues
from taskqueue.models import Lease, Task
from tests.engine.steps import (
    LEASE,
    another_connection,
    claim,
    claim_one,
    end,
    lease_of,
    past,
    run_at_once,
    task_of,
)
from tests.engine.test_apart import take
from tests.sample.tasks import add, echo, noop

pytestmark = pytest.mark.django_db


def test_a_claim_marks_the_task_running_and_leases_it() -> None:
    result = add.using(timeout=5, metadata={"a": 1}).enqueue(1, b=2)
    before = dialect_for(connection).now(connection)
    claimed = claim_one(worker="w1")
    task, lease = task_of(claimed), lease_of(claimed)
    assert (task.id, task.status, task.attempt) == (result.id, "running", 1)
    assert task.started_at is None
    assert (lease.task_id, lease.worker_id, lease.attempt) == (result.id, "w1", 1)
    assert lease.status == "running"
    assert lease.expires_at - lease.claimed_at == LEASE
    assert lease.claimed_at >= before
    assert (lease.started_at, lease.finished_at, lease.stop_requested_at) == (None, None, None)


def test_a_claim_returns_the_stored_task() -> None:
    add.using(timeout=5, metadata={"a": 1}, deadline=100, lease_duration=60).enqueue(1, b=2)
    claimed = claim_one()
    assert (claimed.name, claimed.attempt, claimed.queue_name) == (add.name, 1, "default")
    assert (claimed.args.replace(" ", ""), claimed.kwargs.replace(" ", "")) == ("[1]", '{"b":2}')
    assert claimed.options.replace(" ", "") == '{"timeout":5.0}'
    assert claimed.metadata.replace(" ", "") == '{"a":1}'
    assert (claimed.failures, claimed.crashes, claimed.lease_seconds) == (0, 0, 60)
    assert claimed.deadline_in == pytest.approx(100, abs=20)
    assert lease_of(claimed).expires_at - lease_of(claimed).claimed_at == timedelta(seconds=60)


def test_a_task_without_options_is_told_without_words() -> None:
    noop.enqueue()
    claimed = claim_one()
    assert (claimed.args, claimed.kwargs, claimed.options, claimed.metadata) == ("[]", "{}", "", "")
    assert (claimed.lease_seconds, claimed.deadline_in) == (None, None)


def test_a_claim_takes_no_more_than_its_quota() -> None:
    noop.enqueue_many([((), {})] * 5)
    assert len(claim(2)) == 2
    assert len(claim(2)) == 2
    assert len(claim(2)) == 1
    assert claim(2) == []
    assert Lease.objects.count() == 5


def test_each_queue_is_claimed_by_its_own_quota_in_the_given_order() -> None:
    for queue_name in ("a", "b", "c"):
        echo.using(queue_name=queue_name).enqueue_many([((n,), {}) for n in range(3)])
    claimed = claim(quotas=[("b", 2), ("a", 1), ("none", 5)])
    assert [each.queue_name for each in claimed] == ["b", "b", "a"]
    assert [each.args for each in claimed] == ["[0]", "[1]", "[0]"]


@pytest.mark.parametrize("status", [each for each in TaskStatus if each != TaskStatus.READY])
def test_only_a_ready_task_is_claimed(status: TaskStatus) -> None:
    result = noop.enqueue()
    if status in ("succeeded", "failed", "cancelled"):
        Task.objects.filter(id=result.id).update(status=status, finished_at=past())
    else:
        Task.objects.filter(id=result.id).update(status=status)
    assert claim() == []


def test_a_task_past_its_deadline_or_expired_is_left_to_its_end() -> None:
    noop.using(deadline=past()).enqueue()
    expired = noop.using(expires_after=60).enqueue()
    Task.objects.filter(id=expired.id).update(expires_at=past())
    assert claim() == []


def test_a_task_that_has_started_before_does_not_expire() -> None:
    result = noop.using(expires_after=60).enqueue()
    end(claim_one(), OutcomeKind.RETURNED)
    Task.objects.filter(id=result.id).update(expires_at=past())
    assert claim_one().attempt == 2


def test_names_that_a_worker_does_not_know_are_left_out() -> None:
    noop.enqueue()
    known = echo.enqueue()
    assert claim_one(unknown=[noop.name]).task_id == str(known.id)
    assert claim_one().name == noop.name


def test_the_attempt_rises_at_every_claim() -> None:
    noop.enqueue()
    attempts = []
    for _ in range(3):
        claimed = claim_one()
        attempts.append(claimed.attempt)
        end(claimed, OutcomeKind.RETURNED)
    assert attempts == [1, 2, 3]
    assert list(Lease.objects.order_by("id").values_list("attempt", flat=True)) == [1, 2, 3]


def test_queues_with_ready_tasks_are_returned_once_each() -> None:
    assert ready_queues(connection) == []
    for queue_name in ("b", "a", "b", "c"):
        noop.using(queue_name=queue_name).enqueue()
    noop.using(queue_name="later", run_after=60).enqueue()
    claim(queue="c")
    assert ready_queues(connection) == ["a", "b"]


@pytest.mark.postgresql_only
def test_a_claim_on_several_queues_is_one_statement() -> None:
    noop.enqueue_many([((), {})] * 3)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        claim(quotas=[("default", 2), ("other", 1)])
    assert len(queries) == 1


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_claim_skips_tasks_that_another_worker_is_claiming() -> None:
    results = noop.enqueue_many([((), {})] * 3)
    with another_connection() as other, transaction.atomic():
        mine = claim(2)
        theirs = claim(2, connection=other)
    assert [each.task_id for each in mine] == [str(result.id) for result in results[:2]]
    assert [each.task_id for each in theirs] == [str(results[2].id)]


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_is_rolled_back_leaves_the_task_ready() -> None:
    result = noop.enqueue()
    transaction.set_autocommit(False)
    claim_one()
    transaction.rollback()
    transaction.set_autocommit(True)
    assert (task_of(result).status, task_of(result).attempt) == ("ready", 0)
    assert not Lease.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_workers_claim_each_task_once() -> None:
    noop.enqueue_many([((), {})] * 600)
    claimed: dict[str, list[str]] = {f"w{number}": [] for number in range(6)}

    def work(worker: str) -> Any:
        def run() -> None:
            while True:
                with transaction.atomic():
                    batch = claim(7, worker=worker)
                if not batch:
                    return
                claimed[worker] += [each.task_id for each in batch]

        return run

    run_at_once([work(worker) for worker in claimed])
    everything = [task_id for own in claimed.values() for task_id in own]
    assert len(everything) == len(set(everything)) == 600
    assert Lease.objects.filter(status="running").count() == 600


@pytest.mark.postgresql_only
def test_lease_ids_are_not_repeated_when_a_failover_resets_their_sequence() -> None:
    noop.enqueue_many([((), {})] * 2)
    add.using(worker_names=["w1"]).enqueue_many([((1,), {})] * 2)
    ids: set[int] = set()
    for _ in range(2):
        with connection.cursor() as cursor:
            second = 0
            while second <= max(ids, default=0) >> 22:  # A failover takes longer than that.
                cursor.execute("SELECT EXTRACT(epoch FROM clock_timestamp())::bigint - 1735689600")
                [(second,)] = cursor.fetchall()
            cursor.execute("SELECT setval('taskqueue_lease_id_seq', 1000)")
        ids |= {claim_one(size=1).lease_id, take("w1", limit=1)[0].lease_id}

    assert len(ids) == 4
    assert max(ids) < 2**53
