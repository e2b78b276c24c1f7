"""Claiming under limits: how many run at once, and when what waited is taken."""

from __future__ import annotations

import pytest
from django.db import connections

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.limits import Concurrency, Fair, Rate, Sequence
from taskqueue.engine.limits.declaring import place_waiting
from taskqueue.engine.limits.sweeping import Sweep, prune_limits
from taskqueue.exceptions import LimitDoesNotExist, TransitionRefused
from taskqueue.models import Lease, Limit, Limiter, LimitNote, Partition, Slot, Task
from tests.engine.limit_steps import args, open_lanes, take
from tests.engine.steps import claim, end, make_due, past, promote
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)


one_at_a_time = add.using(concurrency=Concurrency(1))
two_a_key = add.using(concurrency=Concurrency(2, key="a"))


def test_the_ordinary_claim_leaves_limited_tasks_out() -> None:
    one_at_a_time.enqueue(1)
    assert claim() == []
    assert len(take()) == 1


def test_no_more_are_taken_than_have_a_place() -> None:
    two_a_key.enqueue_many([((key,), {}) for key in (1, 1, 1, 2, 2, 2)])
    first = take()
    assert sorted(args(first)) == ["[1]", "[1]", "[2]", "[2]"]
    assert take() == []
    end(first[0], OutcomeKind.SUCCEEDED)
    assert args(take()) == [first[0].args]
    assert take() == []


def test_a_place_is_free_whatever_ends_the_lease() -> None:
    for kind in OutcomeKind:
        Task.objects.all().delete()
        one_at_a_time.enqueue(1)
        [taken] = take()
        end(taken, kind)
        assert not Slot.objects.exists()
        one_at_a_time.enqueue(2)
        assert len(take(1)) == 1, kind
        Lease.objects.all().delete()
        Task.objects.all().delete()


def test_tasks_that_wait_for_a_place_leave_no_partition_open() -> None:
    one_at_a_time.enqueue_many([((1,), {})] * 3)
    take()
    take()
    assert open_lanes() == set()


def test_a_partition_without_tasks_is_closed_and_opens_with_the_next() -> None:
    one_at_a_time.enqueue(1)
    [taken] = take()
    end(taken, OutcomeKind.SUCCEEDED)
    assert take() == []
    assert Partition.objects.get().state == "empty"
    assert not LimitNote.objects.exists()
    one_at_a_time.enqueue(2)
    assert args(take()) == ["[2]"]


def test_a_task_is_noted_once_it_is_ready() -> None:
    one_at_a_time.using(run_after=60).enqueue(1)
    assert not LimitNote.objects.exists()
    one_at_a_time.enqueue(2)
    assert LimitNote.objects.count() == 1


def test_definitions_share_a_limit_by_its_name() -> None:
    shared = Concurrency(2, name="stripe")
    add.using(concurrency=shared).enqueue(1)
    add.using(concurrency=shared, queue_name="other").enqueue(2)
    add.using(concurrency=shared, queue_name="other").enqueue(3)
    assert len(take()) == 2
    assert take() == []


def test_a_task_needs_a_place_of_each_of_its_limits() -> None:
    both = add.using(concurrency=[Concurrency(2, name="all"), Concurrency(1, key="a", name="one")])
    both.enqueue_many([((1,), {}), ((1,), {}), ((2,), {}), ((3,), {})])
    first = take()
    assert sorted(args(first)) == ["[1]", "[2]"]
    end(first[0], OutcomeKind.SUCCEEDED)
    assert len(take()) == 1
    assert take() == []


def test_a_limit_per_host_counts_each_host() -> None:
    add.using(concurrency=Concurrency(1, per="host")).enqueue_many([((1,), {})] * 4)
    [first] = take(host="a")
    assert take(host="a", worker="w2") == []
    assert len(take(host="b")) == 1
    end(first, OutcomeKind.SUCCEEDED)
    assert len(take(host="a")) == 1
    assert take(host="b") == []


def test_a_limit_per_worker_counts_each_worker() -> None:
    add.using(concurrency=Concurrency(1, per="worker")).enqueue_many([((1,), {})] * 3)
    assert len(take(worker="a")) == len(take(worker="b")) == 1
    assert take(worker="a") == []


def test_only_a_worker_with_the_tags_takes_the_task() -> None:
    add.using(requires={"gpu", "eu"}).enqueue(1)
    assert take() == []
    assert take(tags={"gpu"}) == []
    assert len(take(tags={"gpu", "eu", "big"})) == 1


def test_no_window_has_more_starts_than_the_rate() -> None:
    add.using(rate=Rate("2/h")).enqueue_many([((1,), {})] * 5)
    assert len(take()) == 2
    assert take() == []
    partition = Partition.objects.get()
    assert partition.state == "waiting"
    assert partition.opens_at is not None
    # One hour, and one fortieth of it, for the part in which they started.
    wait = (partition.opens_at - Lease.objects.latest("id").claimed_at).total_seconds()
    assert 3600 <= wait <= 3600 * 41 / 40 + 1


def test_a_task_takes_as_many_tokens_as_it_costs() -> None:
    costly = add.using(rate=Rate("10/h"), cost=lambda a: a)
    costly.enqueue_many([((4,), {}), ((4,), {}), ((4,), {})])
    assert len(take()) == 2
    assert take() == []


def test_a_smooth_rate_starts_one_at_a_time() -> None:
    add.using(rate=Rate("100/h", smooth=True)).enqueue_many([((1,), {})] * 3)
    assert len(take()) == 1
    assert take() == []


def test_a_sequence_runs_one_after_another_across_retries() -> None:
    ordered = add.using(sequence=Sequence("a"), max_attempts=2, backoff=None)
    results = [ordered.enqueue(1, b) for b in range(3)]
    ordered.enqueue(2, 0)
    first = take()
    assert sorted(args(first)) == ["[1,0]", "[2,0]"] or sorted(args(first)) == ["[1, 0]", "[2, 0]"]
    of_one = next(row for row in first if row.args.startswith("[1"))
    end(of_one, OutcomeKind.FAILED, delay=3600.0)
    assert take() == []
    make_due(results[0])
    promote()
    [again] = take()
    assert again.task_id == of_one.task_id
    assert take() == []
    end(again, OutcomeKind.SUCCEEDED)
    [second] = take()
    assert second.task_id == str(results[1].id)


def test_a_halted_sequence_goes_on_once_the_task_is_retried() -> None:
    ordered = add.using(sequence=Sequence("a", on_failure="halt"), max_attempts=1)
    failed, following = ordered.enqueue(1), ordered.enqueue(1, 2)
    [taken] = take()
    end(taken, OutcomeKind.FAILED)
    assert take() == []
    assert Partition.objects.get().state == "halted"
    failed.refresh()
    failed.retry()
    [again] = take()
    assert again.task_id == str(failed.id)
    end(again, OutcomeKind.SUCCEEDED)
    [last] = take()
    assert last.task_id == str(following.id)


def test_tenants_share_a_queue_fairly() -> None:
    fair = add.using(fair=Fair("a"))
    fair.enqueue_many([((1, b), {}) for b in range(50)])
    fair.enqueue(2)
    assert sorted(args(take(2)))[-1].startswith("[2")


def test_a_weight_gives_a_larger_share() -> None:
    weighted = add.using(fair=Fair("a", weight=lambda a: 3.0 if a == 1 else 1.0))
    weighted.enqueue_many([((key,), {}) for key in (1, 2) for _ in range(40)])
    taken = args(take(20))
    assert taken.count("[1]") == 15


def test_the_highest_priority_goes_first() -> None:
    two_a_key.enqueue(1)
    two_a_key.using(priority=5).enqueue(2)
    assert args(take(1)) == ["[2]"]


def test_a_limit_is_made_of_what_the_first_task_says() -> None:
    two_a_key.enqueue(1)
    take()
    limit = Limit.objects.get()
    assert (limit.name, limit.concurrency) == ("tests.sample.tasks.add:a", 2)


def test_a_limit_of_a_queue_holds_for_what_waits_there_already() -> None:
    add.enqueue_many([((number,), {}) for number in range(5)])
    one_at_a_time.enqueue(9)
    running = claim(1)
    control.limit_queue("default", concurrency=2)
    assert claim() == []
    assert len(take()) == 1, "What runs takes a place."
    assert take() == []
    end(running[0], OutcomeKind.SUCCEEDED)
    assert len(take()) == 1
    control.limit_queue("default")
    assert len(claim()) + len(take()) == 3


def test_an_override_holds_until_it_is_reset() -> None:
    two_a_key.enqueue_many([((1,), {})] * 6)
    name = "tests.sample.tasks.add:a"
    assert len(take()) == 2
    control.override_limit(name, concurrency=5)
    assert len(take()) == 3
    control.override_limit(name, concurrency=0)
    assert take() == []
    control.reset_limit(name)
    assert take() == []
    with pytest.raises(TransitionRefused):
        control.reset_limit(name)
    with pytest.raises(LimitDoesNotExist):
        control.override_limit("no.such", concurrency=1)


def test_a_halted_sequence_is_released_by_hand() -> None:
    ordered = add.using(sequence=Sequence("a", on_failure="halt"), max_attempts=1)
    failed, following = ordered.enqueue(1), ordered.enqueue(1, 2)
    [taken] = take()
    end(taken, OutcomeKind.FAILED)
    assert take() == []
    control.release_sequence(failed.id)
    [last] = take()
    assert last.task_id == str(following.id)


def test_a_sweep_opens_what_stands_still(caplog: pytest.LogCaptureFixture) -> None:
    one_at_a_time.enqueue(1)
    LimitNote.objects.all().delete()
    assert take() == []
    sweep = Sweep()
    sweep.step(connections["default"])
    assert sweep.repairs == 1
    assert "stood still" in caplog.text
    assert len(take()) == 1
    sweep.step(connections["default"])
    assert sweep.repairs == 1


def test_partitions_and_limiters_without_use_are_pruned_and_made_again() -> None:
    one_at_a_time.enqueue(1)
    [taken] = take()
    end(taken, OutcomeKind.SUCCEEDED)
    take()
    Partition.objects.update(changed_at=past())
    Limiter.objects.update(used_at=past())
    prune_limits(connections["default"])
    assert not Partition.objects.exists()
    assert not Limiter.objects.exists()
    one_at_a_time.enqueue(2)
    assert args(take()) == ["[2]"]


def test_a_new_limit_applies_to_tasks_that_wait_already() -> None:
    add.enqueue_many([((1,), {})] * 3)
    place_waiting(connections["default"], one_at_a_time)
    assert claim() == []
    assert len(take()) == 1


def test_a_paused_task_with_limits_is_not_claimed() -> None:
    result = one_at_a_time.enqueue(1)
    control.pause_definition(result.name)
    assert take() == []
    control.resume_definition(result.name)
    control.pause_all()
    assert take() == []
    control.resume_all()
    control.pause("default")
    assert take() == []
    control.resume("default")
    assert len(take()) == 1
