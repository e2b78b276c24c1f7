"""Tasks of several workers: stopped, retried, overdue, and left by workers that are gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import repeat
from threading import Barrier

import pytest
from django.db import connections
from django.db.models import signals
from django.utils import timezone

from taskqueue.control import cancel, retry
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import broadcast, multi_worker
from taskqueue.engine.connections import open_worker_connection, transaction
from taskqueue.engine.live_changes import LiveChanges, apply_live_changes
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed
from taskqueue.engine.tally import Tally
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Audit, Lease, Task, Worker
from tests.engine.steps import end, outcome, policy
from tests.engine.test_apart import alive, row, take
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_stop_asks_every_worker_and_takes_no_further_ones() -> None:
    result = add.using(workers=3).enqueue(1)
    [first], [second] = take("a"), take("b")
    assert cancel(result.id, by="ada", reason="enough") == "running"
    assert take("c") == []
    assert Lease.objects.filter(stop_requested_by="ada").count() == 2
    assert end(first, OutcomeKind.STOPPED) == "running"
    assert end(second, OutcomeKind.LOST) == "cancelled"
    task = row(result)
    assert (task.error_message, task.running_leases, task.open_slots) == ("enough", 0, 0)
    statuses = Lease.objects.order_by("attempt").values_list("status", flat=True)
    assert list(statuses) == ["stopped", "lost"]


def test_a_shared_task_that_waits_for_its_next_worker_is_cancelled_at_once() -> None:
    result = add.using(workers=2).enqueue(1)
    [first] = take("a")
    end(first, OutcomeKind.SUCCEEDED, return_value="1")
    assert cancel(result.id, by="ada", reason="enough") == "cancelled"
    assert take("b") == []
    assert row(result).error_message == "enough"
    assert Audit.objects.filter(subject=str(result.id), actor="ada").count() == 1


def test_a_body_that_cancels_stops_its_siblings() -> None:
    result = add.using(workers=2).enqueue(1)
    [first], [second] = take("a"), take("b")
    assert end(first, OutcomeKind.CANCELLED, error_message="not today") == "running"
    assert Lease.objects.get(id=second.lease_id).stop_requested_at is not None
    assert end(second, OutcomeKind.STOPPED) == "cancelled"
    assert row(result).status == "cancelled"


def test_an_attempt_whose_stop_was_seen_does_not_count_as_a_success() -> None:
    result = add.using(workers=2).enqueue(1)
    [first], [second] = take("a"), take("b")
    cancel(result.id)
    Lease.objects.filter(id=first.lease_id).update(stop_seen_at=timezone.now())
    assert end(first, OutcomeKind.SUCCEEDED, return_value="1") == "running"
    assert end(second, OutcomeKind.SUCCEEDED, return_value="2") == "cancelled"
    assert row(result).successes == 1


def test_a_retry_reruns_only_the_places_without_a_success() -> None:
    result = add.using(workers=3).enqueue(1)
    leases = [take(name)[0] for name in "abc"]
    end(leases[0], OutcomeKind.SUCCEEDED, return_value='"a"')
    end(leases[1], OutcomeKind.FAILED, error_class="x.Y")
    assert end(leases[2], OutcomeKind.SUCCEEDED, return_value='"c"') == "failed"

    retry(result.id, by="ada")

    task = row(result)
    assert (task.status, task.open_slots, task.failures) == ("ready", 1, 0)
    assert take("a") == take("c") == []
    [again] = take("b")
    assert again.attempt == 4
    assert end(again, OutcomeKind.SUCCEEDED, return_value='"b"') == "succeeded"
    assert row(result).return_value == ["a", "c", "b"]


def test_where_all_have_succeeded_there_is_nothing_to_retry() -> None:
    result = add.using(workers=2).enqueue(1)
    for name in "ab":
        end(take(name)[0], OutcomeKind.SUCCEEDED)
    with pytest.raises(TransitionRefused, match="enqueue it again"):
        retry(result.id)


def test_a_deadline_ends_tasks_that_wait_for_their_next_worker() -> None:
    result = add.using(workers=2, deadline=3600).enqueue(1)
    [first] = take("a")
    end(first, OutcomeKind.SUCCEEDED, return_value="1")
    assert len(multi_worker.end_overdue(connections["default"], policy=policy())) == 0
    Task.objects.update(deadline_at=timezone.now())
    assert len(multi_worker.end_overdue(connections["default"], policy=policy())) == 1
    task = row(result)
    assert (task.status, task.error_class) == ("failed", "taskqueue.exceptions.DeadlineExceeded")


def test_past_its_deadline_what_one_named_worker_runs_is_left_to_that_worker() -> None:
    result = add.using(worker_names=["a", "b"], deadline=3600).enqueue(1)
    [claimed] = take("a")
    Task.objects.update(deadline_at=timezone.now())
    assert len(multi_worker.end_overdue(connections["default"], policy=policy())) == 0
    assert row(result).status == "running"
    assert end(claimed, OutcomeKind.SUCCEEDED, return_value="1") == "succeeded"


def test_a_shared_task_keeps_the_result_or_error_of_each_worker() -> None:
    result = add.using(workers=2, max_attempts=2).enqueue(1)
    [first], [second] = take("a"), take("b")
    end(first, OutcomeKind.FAILED, error_class="x.Y", error_message="no")
    end(second, OutcomeKind.SUCCEEDED, return_value='{"n": 2}')
    history = result.history
    assert [(each.attempt, each.worker_name, each.status) for each in history] == [
        (1, "a", "failed"),
        (2, "b", "succeeded"),
    ]
    assert history[1].return_value == {"n": 2}
    assert history[0].error is not None
    assert history[0].error.message == "no"
    assert history[1].error is None


def release() -> int:
    released, _ = broadcast.release_gone(connections["default"], policy=policy())
    return released


def test_a_broadcast_does_not_wait_for_a_worker_that_is_gone() -> None:
    alive("a")
    alive("b")
    result = add.using(broadcast=True).enqueue(1)
    end(take("a")[0], OutcomeKind.SUCCEEDED, return_value="1")
    assert release() == 0
    Worker.objects.filter(name="b").update(seen_at=timezone.now() - timedelta(minutes=2))
    assert release() == 1
    assert release() == 0
    assert row(result).status == "succeeded"
    lost = Lease.objects.get(worker_id="b")
    assert (lost.status, lost.started_at, lost.attempt) == ("lost", None, 2)


def test_a_broadcast_that_nobody_could_run_fails_and_a_retry_finds_new_workers() -> None:
    alive("a")
    result = add.using(broadcast=True).enqueue(1)
    end(take("a")[0], OutcomeKind.LOST)
    Worker.objects.update(seen_at=timezone.now() - timedelta(minutes=2))
    assert release() == 1
    assert row(result).status == "failed"
    alive("new")
    retry(result.id)
    [again] = take("new")
    assert row(result).worker_names == ["new"]
    assert end(again, OutcomeKind.SUCCEEDED, return_value="5") == "succeeded"


def test_a_ping_ends_the_lease_of_a_worker_that_is_now_excluded() -> None:
    result = add.using(worker_names=["a", "b"], ping_interval=5).enqueue(1)
    [claimed] = take("a")

    def heed() -> LiveChanges:
        with transaction(connections["default"]):
            return apply_live_changes(
                connections["default"],
                worker="a",
                lease_ids=[claimed.lease_id],
                policy=policy(),
                tally=Tally(),
            )

    terms = heed()
    assert (terms.ended, terms.ping_seconds) == (frozenset(), {claimed.lease_id: 5.0})
    result.update(worker_names=["b"], ping_interval=2)
    terms = heed()
    assert terms.ended == {claimed.lease_id}
    assert terms.ping_seconds == {claimed.lease_id: 2.0}
    assert Lease.objects.get().status == "returned"
    assert take("a") == []
    assert len(take("b")) == 1


def test_its_parking_counts_from_the_first_time_too() -> None:
    result = add.using(workers=2).enqueue(1)
    Task.objects.update(enqueued_at=timezone.now() - timedelta(days=2))
    day = policy(park_limit=timedelta(days=1))
    [first] = take("a")
    assert end(first, OutcomeKind.PARKED, policy=day) == "running"
    Task.objects.update(parked_at=timezone.now() - timedelta(days=2))
    [second] = take("b")
    assert end(second, OutcomeKind.PARKED, policy=day, error_class="UnknownTask") == "failed"
    assert row(result).error_class == "UnknownTask"


def test_with_a_limit_of_nothing_it_fails_when_one_does_not_know_it() -> None:
    result = add.using(workers=2).enqueue(1)
    [first] = take("a")
    at_once = policy(park_limit=timedelta(0))
    assert end(first, OutcomeKind.PARKED, policy=at_once, error_class="UnknownTask") == "failed"
    assert row(result).error_class == "UnknownTask"


def test_a_worker_that_came_back_for_other_queues_or_is_quiet_is_as_good_as_gone() -> None:
    long_ago = timezone.now() - timedelta(minutes=2)
    for name in "abc":
        alive(name)
    result = add.using(broadcast=True).enqueue(1)
    end(take("a")[0], OutcomeKind.SUCCEEDED, return_value="1")
    Worker.objects.filter(name="b").update(queues={"mail": 1}, started_at=long_ago)
    Worker.objects.filter(name="c").update(status="quiet", request_seen_at=timezone.now())
    assert release() == 1
    assert row(result).status == "running"
    Worker.objects.filter(name="c").update(request_seen_at=long_ago)
    assert release() == 1
    assert row(result).status == "succeeded"


def test_no_number_of_waiting_broadcasts_keeps_one_from_being_released() -> None:
    alive("a")
    alive("b")
    add.using(broadcast=True).enqueue_many([((1,), {})] * (broadcast.BATCH + 5))
    for _ in range(2):
        take("a", limit=0)
    late = add.using(broadcast=True, queue_name="late").enqueue(1)
    alive("gone")
    take("gone", queue="late", limit=0)
    Worker.objects.filter(name="gone").update(seen_at=timezone.now() - timedelta(minutes=2))
    after, released = None, 0
    for _ in range(2):
        found, after = broadcast.release_gone(connections["default"], policy=policy(), after=after)
        released += found
    assert (released, after) == (1, None)
    assert "gone" not in row(late).worker_names


def test_a_broadcast_that_is_published_again_finds_the_workers_alive_then() -> None:
    again = add.using(broadcast=True, unique_key="k", unique_for="kept", restart="all")
    alive("a")
    alive("b")
    result = again.enqueue(1)
    for name in "ab":
        end(take(name)[0], OutcomeKind.SUCCEEDED, return_value="1")
    Worker.objects.filter(name="b").delete()
    alive("new")
    assert again.enqueue(2).updated
    for name in ("a", "new"):
        end(take(name)[0], OutcomeKind.SUCCEEDED, return_value="2")
    task = row(result)
    assert (task.status, task.return_value) == ("succeeded", [2, 2])


def test_receivers_of_the_projects_signals_are_not_called_for_leases() -> None:
    called: list[object] = []

    def receive(**signal: object) -> None:
        called.append(signal["sender"])

    hooks = (signals.pre_save, signals.post_save, signals.pre_delete, signals.post_delete)
    for hook in hooks:
        hook.connect(receive)
    try:
        add.using(workers=2).enqueue(1)
        end(take("a")[0], OutcomeKind.UNSTARTED)
        end(take("a")[0], OutcomeKind.SUCCEEDED)
    finally:
        for hook in hooks:
            hook.disconnect(receive)
    assert called == []


def cancel_it(claimed: Claimed, barrier: Barrier) -> None:
    connection = open_worker_connection(silence=5)
    try:
        barrier.wait(60)
        with transaction(connection):
            record(connection, [outcome(claimed, OutcomeKind.CANCELLED)], policy=policy())
    finally:
        connection.close()


@pytest.mark.postgresql_only
def test_workers_that_cancel_one_task_at_one_moment_do_not_wait_for_each_other() -> None:
    names = [f"w{number}" for number in range(4)]
    for _ in range(10):
        result = add.using(workers=len(names)).enqueue(1)
        leases = [take(name)[0] for name in names]
        with ThreadPoolExecutor(len(names)) as pool:
            barrier = Barrier(len(names))
            list(pool.map(cancel_it, leases, repeat(barrier)))
        assert row(result).status == "cancelled"


def test_a_broadcast_counts_the_failures_of_each_worker_alone() -> None:
    for name in ("a", "b"):
        alive(name)
    add.using(broadcast=True, max_attempts=2).enqueue(1)
    [first], [second] = take("a"), take("b")
    assert (first.failures, first.max_attempts) == (0, 2)
    end(first, OutcomeKind.FAILED)
    end(second, OutcomeKind.FAILED)
    Lease.objects.update(retry_at=timezone.now() - timedelta(seconds=1))
    [again] = take("a")
    assert (again.failures, again.max_attempts) == (1, 2)
    end(again, OutcomeKind.FAILED)
    [last] = take("b")
    assert last.failures == 1
