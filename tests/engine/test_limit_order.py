"""Which of the partitions that wait goes next, and what halts a sequence."""

from __future__ import annotations

import json

import pytest
from django.db import connections

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.limits import Concurrency, Fair, Rate, Sequence
from taskqueue.engine.apart import look_apart
from taskqueue.engine.limit_rows import Place
from taskqueue.engine.rows import MOST_LOOKED_AT, Claimed
from taskqueue.models import Partition, Task
from taskqueue.worker.limited_claims import LimitedClaims
from taskqueue.worker.limits import NO_LIMITS
from taskqueue.worker.quotas import QueueQuotas
from tests.engine.limit_steps import args, open_lanes, repairs, take
from tests.engine.steps import LEASE, end, past
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "tests.sample.tasks.add"
SHARED = Concurrency(1, name="shared")
halting = add.using(sequence=Sequence("a", name="order", on_failure="halt"), max_attempts=1)


def run_one() -> Claimed:
    [taken] = take(1)
    end(taken, OutcomeKind.SUCCEEDED)
    return taken


def test_of_many_partitions_the_best_tasks_go_first_however_few_of_each_are_read() -> None:
    keyed = add.using(concurrency=Concurrency(20, key="a", name="key"))
    keyed.enqueue_many([((key, 0), {}) for key in range(20) for _ in range(3)])
    keyed.using(priority=5).enqueue_many([((7, 1), {})] * 6)
    keyed.using(priority=9).enqueue_many([((8, 2), {})] * 5)
    taken = [json.loads(text) for text in args(take(12))]
    assert taken[:11] == [[8, 2]] * 5 + [[7, 1]] * 6
    assert len(taken) == 12


def test_a_claim_reaches_tasks_behind_many_closed_partitions_at_once() -> None:
    full = add.using(concurrency=[Concurrency(1, name="full"), Concurrency(1, key="a", name="key")])
    full.enqueue_many([((key, 0), {}) for key in range(30)])
    assert len(take(0)) == 0
    noop.using(concurrency=Concurrency(5, name="other")).enqueue()
    control.override_limit("full", concurrency=0)
    Partition.objects.update(state="open", waits_for=None)
    assert args(take(2)) == ["[]"]


def test_a_look_tells_when_the_next_token_comes() -> None:
    add.using(rate=Rate("1/h")).enqueue_many([((1,), {})] * 2)
    assert look_apart(connections["default"], worker="w1").opens_in is None
    assert len(take()) == 1
    opens_in = look_apart(connections["default"], worker="w1").opens_in
    assert opens_in is not None
    assert 3000 < opens_in < 3800


# Partitions that wait for one limiter


def test_many_tenants_do_not_starve_others_that_wait_for_the_same_limit() -> None:
    """The virtual time of a tenant is a small number, the time of another task is a large one."""
    tenants = add.using(concurrency=SHARED, fair=Fair("a"))
    tenants.enqueue_many([((key,), {}) for key in range(1, 31) for _ in range(2)])
    add.using(concurrency=SHARED).enqueue_many([((0,), {})] * 2)
    [running] = take(1)
    while take():
        pass
    assert open_lanes() == set()
    found = []
    for _ in range(31):
        end(running, OutcomeKind.SUCCEEDED)
        [running] = take(1)
        found.append(running.args)
    assert "[0]" in found


def test_the_tenants_of_two_queues_take_turns_under_one_limit() -> None:
    """One queue has had many more tasks, so that its tenants are far ahead in virtual time."""
    fair = add.using(concurrency=SHARED, fair=Fair("a"))
    fair.using(queue_name="old").enqueue_many([((1,), {})] * 30)
    for _ in range(10):
        run_one()
    fair.using(queue_name="new").enqueue_many([((key,), {}) for key in range(2, 40)])
    [running] = take(1)
    while take():
        pass
    found = []
    for _ in range(18):
        end(running, OutcomeKind.SUCCEEDED)
        [running] = take(1)
        found.append(running.queue_name)
    assert set(found) == {"old", "new"}


def test_the_highest_priority_gets_a_place_first() -> None:
    keyed = add.using(concurrency=[SHARED, Concurrency(1, key="a", name="key")])
    keyed.enqueue(0)
    [running] = take(1)
    keyed.enqueue_many([((key,), {}) for key in range(1, 30)])
    while take():
        pass
    keyed.using(priority=5).enqueue(99)
    assert take() == []
    end(running, OutcomeKind.SUCCEEDED)
    assert args(take(1)) == ["[99]"]


# What the code changes


def test_a_changed_weight_holds_for_tasks_that_are_enqueued_from_then_on() -> None:
    before, after = (add.using(fair=Fair("a", weight=weight)) for weight in (1, 3))
    for key in (1, 2):
        before.enqueue(key)
    assert len(take()) == 2
    after.enqueue_many([((1,), {})] * 40)
    before.enqueue_many([((2,), {})] * 40)
    assert args(take(20)).count("[1]") in (14, 15, 16)


def test_a_changed_on_failure_holds_for_tasks_that_are_enqueued_from_then_on() -> None:
    going_on = halting.using(sequence=Sequence("a", name="order"))
    first, second, third = going_on.enqueue(1), halting.enqueue(1), going_on.enqueue(1)
    for result, state in ((first, "waiting"), (second, "halted")):
        [taken] = take()
        assert taken.task_id == str(result.id)
        end(taken, OutcomeKind.FAILED)
        if state == "halted":
            assert take() == []
            assert Partition.objects.get().state == state
    control.release_sequence(second.id)
    [last] = take()
    assert last.task_id == str(third.id)


# Tasks that a worker does not know


def test_partitions_with_unknown_tasks_do_not_hide_others_from_a_worker() -> None:
    add.using(concurrency=Concurrency(1, key="a", name="key")).enqueue_many(
        [((key,), {}) for key in range(40)]
    )
    noop.using(concurrency=Concurrency(1, name="other")).enqueue()
    behind: dict[tuple[str, str], Place] = {}
    for _ in range(6):
        if taken := take(1, unknown=[NAME], behind=behind):
            break
    assert [row.name for row in taken] == ["tests.sample.tasks.noop"]
    for _ in range(6):
        assert take(1, unknown=[NAME], behind=behind) == []
    assert len(take(40)) == 40


# Sequences that are halted


def test_a_sequence_stays_halted_without_tasks_that_wait() -> None:
    failed = halting.enqueue(1)
    end(take()[0], OutcomeKind.FAILED)
    assert take() == []
    assert Partition.objects.get().state == "halted"
    following = halting.enqueue(1)
    assert take() == []
    control.release_sequence(failed.id)
    assert [row.task_id for row in take()] == [str(following.id)]


def test_a_sequence_stays_halted_once_its_failed_task_is_deleted() -> None:
    failed = halting.enqueue(1)
    end(take()[0], OutcomeKind.FAILED)
    assert take() == []
    Task.objects.filter(id=failed.id).delete()
    following = halting.enqueue(1)
    assert take() == []
    assert Partition.objects.get().state == "halted"
    assert repairs() == 0
    control.release_sequence(following.id)
    assert [row.task_id for row in take()] == [str(following.id)]


def test_a_halted_sequence_goes_on_once_the_failed_task_has_succeeded() -> None:
    failed = halting.enqueue(1)
    end(take()[0], OutcomeKind.FAILED)
    assert take() == []
    failed.refresh()
    failed.retry()
    end(take()[0], OutcomeKind.SUCCEEDED)
    assert take() == []
    assert Partition.objects.get().state == "empty"


# Tokens


def test_a_changed_limit_opens_only_what_waits_for_its_own_tokens() -> None:
    for key, name in enumerate(("slow", "other")):
        add.using(rate=Rate("2/h", name=name)).enqueue_many([((key,), {})] * 3)
    assert len(take()) == 4
    assert take() == []
    before = dict(Partition.objects.values_list("id", "opens_at"))
    control.override_limit("slow", rate="9/h")
    changed = [
        partition.limits["limits"][0]["name"]
        for partition in Partition.objects.all()
        if partition.opens_at != before[partition.id]
    ]
    assert changed == ["slow"]
    assert args(take()) == ["[0]"]


def test_a_changed_rate_of_a_queue_opens_what_waits_there() -> None:
    add.enqueue_many([((1,), {})] * 3)
    control.limit_queue("default", rate="2/h")
    assert len(take()) == 2
    assert take() == []
    control.limit_queue("default", rate="9/h")
    assert len(take()) == 1


# Beside ordinary tasks


def first(want: int = 1) -> list[str]:
    """Return the tasks that a worker takes before better ordinary ones of the queue."""
    claims = LimitedClaims(
        QueueQuotas.parse("default"), worker_name="w1", host="h1", tags=(), lease_duration=LEASE
    )
    claims.see(open_lanes())
    claimed = claims.claim(
        connections["default"], want, [], room=NO_LIMITS, free=want, slots=want, is_first=True
    )
    return args(claimed)


def test_a_limited_task_does_not_go_before_an_older_ordinary_one() -> None:
    keyed = add.using(concurrency=Concurrency(5, key="a", name="key"))
    noop.enqueue()
    Task.objects.update(run_after=past())
    keyed.enqueue(1)
    assert first() == []
    keyed.using(priority=1).enqueue(2)
    take(0)
    assert first() == ["[2]"]
    Task.objects.filter(name=noop.name).delete()
    assert first() == ["[1]"]


def test_a_limited_task_does_not_go_before_what_may_stand_behind_a_paused_definition() -> None:
    keyed = add.using(concurrency=Concurrency(5, key="a", name="key"))
    noop.enqueue_many([((), {})] * (MOST_LOOKED_AT - 1))
    control.pause_definition(noop.name)
    keyed.enqueue(1)
    assert first() == ["[1]"], "Fewer are paused than are looked at."
    noop.enqueue_many([((), {})] * 2)
    Task.objects.filter(name=noop.name).update(run_after=past())
    keyed.enqueue(2)
    assert first() == []
    keyed.using(priority=1).enqueue(3)
    take(0)
    assert first() == ["[3]"]
