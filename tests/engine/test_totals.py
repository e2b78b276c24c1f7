"""Counts since the beginning never fall, whatever is merged, pruned or deleted."""

from __future__ import annotations

import time
from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections
from django.db.models import F, Sum
from django.db.transaction import atomic

from taskqueue.control import cancel, delete, duplicate, retry
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import broadcast, multi_worker, totals
from taskqueue.engine.record import record
from taskqueue.engine.rollups import merge_rollups
from taskqueue.engine.tally import Tally
from taskqueue.exceptions import DuplicateTask
from taskqueue.models import Arrival, Rollup, Task, Total
from taskqueue.monitoring.metrics.figures import ENDS, OUTCOMES, Counted, counters
from tests.engine.steps import Undo, claim, claim_one, outcome, past, policy, prune
from tests.engine.test_apart import take
from tests.monitoring.rows import make_worker
from tests.sample.tasks import add, fail

pytestmark = pytest.mark.django_db(transaction=True)


def counted(queue: str = "default") -> Counted:
    return counters()[0].get(queue, Counted())


def figures() -> tuple[dict[str, Counted], dict[str, Counted]]:
    return counters()


def enqueued(meant: Set[str] = frozenset()) -> dict[str, float]:
    return {queue: each.sums["enqueued"] for queue, each in counters(frozenset(meant))[0].items()}


def attempts(queue: str = "default") -> dict[str, float]:
    return {name: n for name in OUTCOMES if (n := counted(queue).sums[name])}


def ends(queue: str = "default") -> dict[str, float]:
    return {name: n for name in ENDS if (n := counted(queue).sums[f"tasks_{name}"])}


def recorded(claimed: Any, kind: OutcomeKind, **fields: Any) -> None:
    tally = Tally()
    with tally.guard(), atomic():
        record(connection, [outcome(claimed, kind, **fields)], policy=policy(), tally=tally)


def grow_older(by: timedelta) -> None:
    Rollup.objects.update(starts_at=F("starts_at") - by)


def test_each_way_to_enqueue_is_counted_once() -> None:
    add.enqueue(1, 2)
    add.using(run_after=60).enqueue(1, 2)
    add.enqueue_many([((n, n), {}) for n in range(7)])
    add.using(workers=2).enqueue_many([((n, n), {}) for n in range(2)])
    add.using(queue_name="mail").enqueue(1, 2)
    again = duplicate(add.enqueue(1, 2))
    assert isinstance(again, UUID)
    assert (counted().sums["enqueued"], counted("mail").sums["enqueued"]) == (13, 1)
    assert counters()[1][add.name].sums["enqueued"] == 14 == Task.objects.count()


def test_a_rolled_back_enqueue_is_not_counted() -> None:
    def in_vain() -> None:
        with atomic():
            add.enqueue(1, 2)
            add.enqueue_many([((1, 2), {}), ((3, 4), {})])
            raise Undo

    with pytest.raises(Undo):
        in_vain()
    assert counted().sums["enqueued"] == 0 == Task.objects.count()


def test_of_a_unique_key_only_who_creates_the_task_counts() -> None:
    held = add.using(unique_key="k")
    held.enqueue(1, 2)
    held.enqueue(1, 2)
    held.using(on_duplicate="replace").enqueue(3, 4)
    with pytest.raises(DuplicateTask):
        held.using(on_duplicate="raise").enqueue(1, 2)
    held.enqueue_many([((1, 2), {}), ((3, 4), {})])
    assert counted().sums["enqueued"] == 1 == Task.objects.count()


def test_a_task_that_is_run_again_is_not_enqueued_again_but_ends_again() -> None:
    task = add.enqueue(1, 2)
    recorded(claim_one(), OutcomeKind.SUCCEEDED)
    retry(task.id)
    recorded(claim_one(), OutcomeKind.CANCELLED)
    assert (counted().sums["enqueued"], ends()) == (1, {"succeeded": 1, "cancelled": 1})


def test_ends_by_hand_are_counted_in_their_transaction() -> None:
    cancel(add.enqueue(1, 2).id)
    other = add.using(queue_name="mail").enqueue(1, 2)

    def in_vain() -> None:
        with atomic():
            cancel(other.id)
            raise Undo

    with pytest.raises(Undo):
        in_vain()
    assert (ends(), ends("mail"), attempts()) == ({"cancelled": 1}, {}, {})


def test_a_task_of_several_workers_ends_once_by_hand_or_by_its_deadline() -> None:
    for deadline in (None, timedelta(hours=1)):
        add.using(workers=2, deadline=deadline).enqueue(1, 2)
    for worker in ("w1", "w2"):
        for claimed in take(worker):
            recorded(claimed, OutcomeKind.SUCCEEDED)
        if worker == "w1":
            assert ends() == {}, "one of two has run it"
            first, second = Task.objects.order_by("id")
            cancel(first.id)
            Task.objects.filter(id=second.id).update(deadline_at=past())
            assert len(multi_worker.end_overdue(connection, policy=policy())) == 1
    assert ends() == {"cancelled": 1, "failed": 1}


def test_the_part_of_a_worker_that_is_gone_counts_as_lost() -> None:
    add.using(broadcast=True).enqueue(1, 2)
    Task.objects.update(workers=1, open_slots=1, worker_names=["gone"], pinned_to="gone")
    assert broadcast.release_gone(connection, policy=policy())[0] == 1
    assert (attempts(), ends()) == ({"lost": 1}, {"failed": 1})


def test_totals_stay_when_rows_are_merged_pruned_and_deleted() -> None:
    for number in range(4):
        fail.enqueue() if number % 2 else add.using(queue_name="mail").enqueue(1, 2)
    for queue in ("mail", "default"):
        for claimed in claim(queue=queue):
            recorded(claimed, OutcomeKind.FAILED if queue == "default" else OutcomeKind.SUCCEEDED)
    cancel(add.enqueue(1, 2).id)
    before = figures()
    for age in (timedelta(minutes=3), timedelta(hours=3), timedelta(days=2), timedelta(days=91)):
        grow_older(age)
        merge_rollups(connection)
        assert figures() == before
    Task.objects.update(prune_after=past())
    delete(Task.objects.first())
    assert prune() == 4
    assert figures() == before
    assert Rollup.objects.count() == Arrival.objects.count() == 0
    assert before[0]["default"].sums["enqueued"] == 3
    assert before[0]["mail"].run_times.total() == 2
    assert set(Total.objects.values_list("kind", "label")) == {
        ("queue", "mail"), ("queue", "default"), ("name", add.name), ("name", fail.name),
    }  # fmt: skip


def test_arrivals_are_added_in_batches_until_none_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(totals, "ARRIVALS", 2)
    monkeypatch.setattr(totals, "LONGEST_ROUND", 2)
    for _ in range(5):
        add.enqueue_many([((1, 2), {})] * 3)
    assert totals.add_arrivals(connection), "there is more"
    assert Arrival.objects.aggregate(n=Sum("number"))["n"] == 3
    assert counted().sums["enqueued"] == 15
    assert not totals.add_arrivals(connection)
    assert counted().sums["enqueued"] == 15
    assert not Arrival.objects.exists()


@pytest.mark.postgresql_only
def test_workers_that_merge_at_once_count_each_row_once() -> None:
    for _ in range(200):
        add.enqueue(1, 2)
    for claimed in claim(200):
        recorded(claimed, OutcomeKind.SUCCEEDED)
    grow_older(timedelta(minutes=3))

    def merge(_: int) -> None:
        merge_rollups(connections["default"])
        connections["default"].close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(merge, range(8)))
    merge_rollups(connection)
    assert counted().sums["enqueued"] == 200
    assert (attempts(), ends()) == ({"succeeded": 200}, {"succeeded": 200})
    assert not Rollup.objects.filter(resolution=0).exists()


def test_beyond_the_bound_what_is_new_shares_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "MOST_LABELS", 2)
    for number in range(4):
        add.using(queue_name=f"q{number}").enqueue(1, 2)
    found = {queue: each.sums["enqueued"] for queue, each in counters()[0].items()}
    assert found == {"q0": 1, "q1": 1, "…other": 2}
    merge_rollups(connection)
    assert {queue: each.sums["enqueued"] for queue, each in counters()[0].items()} == found
    add.using(queue_name="q3").enqueue(1, 2)
    add.using(queue_name="q0").enqueue(1, 2)
    found = {queue: each.sums["enqueued"] for queue, each in counters()[0].items()}
    assert found == {"q0": 2, "q1": 1, "…other": 3}


def test_a_queue_that_a_worker_names_takes_the_row_of_the_least_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(totals, "MOST_LABELS", 2)
    for name, number in (("junk", 1), ("busy", 3), ("other-junk", 2)):
        add.using(queue_name=name).enqueue_many([((1, 2), {})] * number)
        merge_rollups(connection)
    assert enqueued() == {"junk": 1, "busy": 3, "…other": 2}
    make_worker(queues={"mail": 1})
    add.using(queue_name="mail").enqueue(1, 2)
    before = {"junk": 1, "busy": 3, "…other": 2, "mail": 1}
    assert enqueued(meant={"mail"}) == before, "nothing stands where it does not stay"
    merge_rollups(connection)
    after = {"busy": 3, "…other": 3, "mail": 1}
    assert enqueued() == after
    add.using(queue_name="junk").enqueue(1, 2)
    merge_rollups(connection)
    assert enqueued() == {**after, "…other": 4}
    add.enqueue(1, 2)
    merge_rollups(connection)
    assert enqueued() == {"default": 1, "…other": 7, "mail": 1}, "so does the default one"


def test_totals_of_a_dropped_label_are_added_to_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(totals, "MOST_LABELS", 1)
    make_worker(queues={"mail": 1})
    for name in ("junk", "mail"):
        add.using(queue_name=name).enqueue(1, 2)
        recorded(claim_one(queue=name), OutcomeKind.SUCCEEDED)
        grow_older(timedelta(minutes=3))
        merge_rollups(connection)
    for name in ("…other", "mail"):
        found = counted(name)
        assert (found.sums["enqueued"], attempts(name), ends(name)) == (
            1,
            {"succeeded": 1},
            {"succeeded": 1},
        )
        assert sum(found.run_times.values()) == 1
    assert set(counters()[0]) == {"…other", "mail"}


def test_who_waited_for_a_lock_until_its_row_was_merged_counts_in_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _ in range(2):
        add.enqueue(1, 2)
    tally, before_the_wait = Tally(), time.monotonic()
    monkeypatch.setattr("taskqueue.engine.tally.PART_SECONDS", 0.0)
    clock = SimpleNamespace(monotonic=lambda: before_the_wait)
    monkeypatch.setattr("taskqueue.engine.record.time", clock)
    for claimed in claim():
        ended = [outcome(claimed, OutcomeKind.SUCCEEDED)]
        with tally.guard(), atomic():
            record(connection, ended, policy=policy(), tally=tally)
        grow_older(timedelta(minutes=3))
        merge_rollups(connection)
    assert attempts() == {"succeeded": 2}
