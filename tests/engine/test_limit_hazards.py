"""Hazards of limits: tasks that wait for ever, too many that run, others that starve."""

from __future__ import annotations

import json
from datetime import timedelta
from threading import Thread
from uuid import UUID

import pytest
from django.db import connection as default_connection
from django.db import connections
from django.db.models import F

from taskqueue import control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.limits import Concurrency, Fair, Rate, Sequence
from taskqueue.declarations.placement import limiter_of
from taskqueue.engine.connections import transaction
from taskqueue.engine.limits.sweeping import prune_limits
from taskqueue.engine.statement import fetch
from taskqueue.models import Limiter, LimitNote, Partition, Slot, Task
from tests.engine.limit_steps import args, open_lanes, repairs, take, take_and_tell
from tests.engine.steps import another_connection, end, make_due, past, promote
from tests.sample.tasks import add, noop
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "tests.sample.tasks.add"
one_at_a_time = add.using(concurrency=Concurrency(1, name="one"))
in_order = add.using(sequence=Sequence("a", name="order"), max_attempts=2, backoff=None)
WAITS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def prune_unused() -> None:
    Partition.objects.update(changed_at=past())
    Limiter.objects.update(used_at=past())
    prune_limits(connections["default"])


# Notes


def test_a_claim_that_cannot_read_all_notes_leaves_those_of_a_limiter_that_it_holds() -> None:
    """Partitions that wait for that limiter are opened by a later claim."""
    shared = Concurrency(1, name="shared")
    keyed = add.using(concurrency=[shared, Concurrency(1, key="a", name="key")])
    keyed.enqueue_many([((key,), {}) for key in range(3)])
    [running] = take(1)
    take()
    assert Partition.objects.filter(state="waiting").count() == 2
    Partition.objects.filter(id=Partition.objects.filter(state="waiting").first().id).update(
        state="open", waits_for=None
    )
    end(running, OutcomeKind.SUCCEEDED)
    LimitNote.objects.bulk_create(LimitNote(subject=UUID(int=number)) for number in range(1, 400))
    take(0)
    assert repairs() == 0


# Sequences


def test_a_retry_goes_on_however_many_wait_behind_it() -> None:
    results = [in_order.enqueue(1, b) for b in range(5)]
    [first] = take(1)
    end(first, OutcomeKind.FAILED, delay=3600.0)
    make_due(results[0])
    promote()
    Task.objects.filter(id=results[0].id).update(run_after=F("run_after") + timedelta(days=1))
    [again] = take(1)
    assert again.task_id == first.task_id


def test_a_worker_that_does_not_know_a_task_leaves_its_sequence_to_others() -> None:
    result = in_order.enqueue(1, 1)
    noop.using(sequence=Sequence(lambda: "1", name="order")).enqueue()
    assert take(unknown=[NAME]) == [], "Nothing overtakes."
    [first] = take()
    end(first, OutcomeKind.FAILED, delay=3600.0)
    make_due(result)
    promote()
    assert take(unknown=[NAME]) == []
    [again] = take()
    assert again.task_id == first.task_id


@pytest.mark.postgresql_only
def test_a_sequence_stays_closed_where_another_task_of_the_claim_is_held() -> None:
    in_order.enqueue_many([((1, 1), {}), ((1, 2), {})])
    held = one_at_a_time.enqueue(9)
    with another_connection() as other, transaction(other):
        fetch(other, "SELECT 1 FROM taskqueue_task WHERE id = %s FOR UPDATE", (held.id,))
        assert len(take()) == 1
        assert take() == []
    assert args(take()) == ["[9]"]
    assert take() == []


# Changes of limits


def test_a_limit_of_zero_leaves_no_partition_open() -> None:
    one_at_a_time.enqueue(1)
    end(take()[0], OutcomeKind.SUCCEEDED)
    control.override_limit("one", concurrency=0)
    one_at_a_time.enqueue(2)
    assert take() == []
    assert open_lanes() == set()
    control.reset_limit("one")
    assert len(take()) == 1


@pytest.mark.postgresql_only
@pytest.mark.parametrize("by_rate", [False, True])
def test_a_limit_that_is_raised_during_a_claim_opens_its_partitions(by_rate: bool) -> None:
    limited = add.using(rate=Rate("1/d", name="one")) if by_rate else one_at_a_time
    limited.enqueue_many([((1,), {})] * 3)
    take(1)
    Partition.objects.update(state="open", waits_for=None, opens_at=None)
    raised = {"rate": "9/d"} if by_rate else {"concurrency": 9}

    def claim() -> None:
        with another_connection() as worker:
            taken.extend(take(connection=worker))

    def override() -> None:
        control.override_limit("one", **raised)
        connections.close_all()

    taken: list[object] = []
    threads = [Thread(target=claim), Thread(target=override)]
    with another_connection() as other:
        with transaction(other):
            fetch(other, "SELECT 1 FROM taskqueue_limiter FOR UPDATE")
            threads[0].start()
            wait_until(lambda: fetch(default_connection, WAITS) == [(1,)])
            threads[1].start()
            wait_until(
                lambda: fetch(default_connection, WAITS) == [(2,)] or not threads[1].is_alive()
            )
        for thread in threads:
            thread.join(60)
    assert len(taken) + len(take()) == 2
    assert repairs() == 0


@pytest.mark.postgresql_only
def test_a_place_that_comes_free_during_a_claim_is_not_forgotten() -> None:
    """The claim waits for its limiter, and looks at nothing that waits for it too."""
    both = add.using(concurrency=[Concurrency(1, name="all"), Concurrency(1, key="a", name="key")])
    both.enqueue(1)
    [running] = take()
    both.enqueue_many([((2,), {}), ((3,), {})])
    assert take() == []
    closed = Partition.objects.filter(state="waiting").first()
    Partition.objects.filter(id=closed.id).update(state="open", waits_for=None)

    def claim() -> None:
        with another_connection() as worker:
            taken.extend(take(connection=worker, unknown=[NAME]))

    taken: list[object] = []
    thread = Thread(target=claim)
    with another_connection() as other:
        with transaction(other):
            fetch(other, "SELECT 1 FROM taskqueue_limiter FOR UPDATE")
            thread.start()
            wait_until(lambda: fetch(default_connection, WAITS) == [(1,)])
            end(running, OutcomeKind.SUCCEEDED)
        thread.join(60)
    Task.objects.filter(partition=closed.id).delete()
    assert len(take()) == 1
    assert repairs() == 0


@pytest.mark.postgresql_only
def test_a_free_place_is_kept_for_a_partition_that_somebody_holds() -> None:
    """A claim holds the rows, too, that were open when it began and are not when it locks them."""
    one_at_a_time.enqueue_many([((1,), {}), ((2,), {})])
    [running] = take()
    assert take() == []
    with another_connection() as other, transaction(other):
        fetch(other, "SELECT 1 FROM taskqueue_partition FOR UPDATE")
        end(running, OutcomeKind.SUCCEEDED)
        assert take() == []
    assert repairs() == 0
    assert args(take()) == ["[2]"]


def test_a_higher_rate_releases_tasks_that_wait_for_a_token() -> None:
    for change_of_rate in (
        lambda: control.override_limit("slow", rate="9/h"),
        lambda: control.reset_limit("slow"),
    ):
        add.using(rate=Rate("2/h", name="slow")).enqueue_many([((1,), {})] * 3)
        take()
        assert take() == []
        change_of_rate()
        assert open_lanes() != set()
        take()


def test_a_task_that_costs_more_than_the_lowered_rate_takes_all_of_it() -> None:
    costly = add.using(rate=Rate("10/h", name="slow"), cost=lambda a: a)
    costly.enqueue(1)
    end(take()[0], OutcomeKind.SUCCEEDED)
    Limiter.objects.update(starts=None)
    control.override_limit("slow", rate="3/h")
    costly.enqueue_many([((5,), {}), ((1,), {})])
    assert args(take()) == ["[5]"]
    assert take() == []
    assert Partition.objects.get().opens_at > past(timedelta(0))


# Rows that are pruned


def test_a_limiter_that_is_gone_is_made_again_for_a_partition_that_is_left() -> None:
    one_at_a_time.enqueue_many([((1,), {}), ((2,), {})])
    end(take(1)[0], OutcomeKind.SUCCEEDED)
    Limiter.objects.all().delete()
    LimitNote.objects.all().delete()
    Partition.objects.update(state="open")
    assert len(take()) == 1
    assert take() == []
    assert Limiter.objects.count() == 1


def test_a_limiter_is_kept_while_a_partition_waits_for_it() -> None:
    one_at_a_time.enqueue(1)
    end(take()[0], OutcomeKind.SUCCEEDED)
    control.override_limit("one", concurrency=0)
    one_at_a_time.enqueue(2)
    take()
    prune_unused()
    control.reset_limit("one")
    assert len(take()) == 1


def test_the_starts_of_a_window_that_people_made_longer_are_kept() -> None:
    limited = add.using(rate=Rate("1/m", name="slow"))
    limited.enqueue(1)
    end(take()[0], OutcomeKind.SUCCEEDED)
    take()
    control.override_limit("slow", rate="1/d")
    prune_unused()
    assert Limiter.objects.exists()


def test_a_sweep_finds_what_waits_for_a_limiter_that_is_gone() -> None:
    one_at_a_time.enqueue_many([((1,), {}), ((2,), {})])
    end(take(1)[0], OutcomeKind.SUCCEEDED)
    LimitNote.objects.all().delete()
    gone = limiter_of("no.such", "")
    Partition.objects.update(state="waiting", waits_for=gone)
    assert repairs() == 1
    assert len(take()) == 1
    assert repairs() == 0


# Limits of queues


def test_a_limit_of_a_queue_holds_for_what_waited_for_another_limit() -> None:
    """A freed place may open a partition in a queue of which the claim has seen nothing else."""
    shared = Concurrency(2, name="shared")
    add.using(concurrency=shared, queue_name="other").enqueue_many([((1,), {})] * 2)
    first = take()
    add.using(concurrency=shared, queue_name="tight").enqueue_many([((2,), {})] * 3)
    assert take() == []
    control.limit_queue("tight", concurrency=1)
    for row in first:
        end(row, OutcomeKind.SUCCEEDED)
    assert args(take()) == ["[2]"]
    assert take() == []


def test_a_limit_that_is_taken_from_a_queue_leaves_nothing_behind() -> None:
    noop.enqueue_many([((), {})] * 2)
    one_at_a_time.enqueue_many([((1,), {})] * 2)
    control.limit_queue("default", concurrency=1)
    [first] = take()
    control.limit_queue("default")
    end(first, OutcomeKind.SUCCEEDED)
    take()
    assert repairs() == 0
    assert not Slot.objects.filter(limiter_id=limiter_of("queue:default", "")).exists()


# Fairness


def test_a_new_tenant_does_not_go_before_all_that_wait_for_the_same_limit() -> None:
    fair = add.using(fair=Fair("a"), concurrency=Concurrency(1, name="all"))
    fair.enqueue_many([((key,), {}) for key in (1, 2) for _ in range(20)])
    for _ in range(20):
        end(take()[0], OutcomeKind.SUCCEEDED)
    [taken] = take()
    fair.enqueue_many([((3,), {})] * 20)
    found = []
    for _ in range(9):
        end(taken, OutcomeKind.SUCCEEDED)
        [taken] = take()
        found.append(taken.args)
    assert found.count("[3]") <= 4


def test_a_tenant_that_was_idle_does_not_wait_for_what_it_once_had() -> None:
    fair = add.using(fair=Fair("a"))
    fair.enqueue_many([((1,), {})] * 50)
    take()
    take()
    fair.enqueue_many([((2,), {})] * 50)
    take(2)
    fair.enqueue_many([((1,), {})] * 5)
    assert args(take(6)).count("[1]") >= 2


def test_queues_that_share_a_limit_take_turns() -> None:
    shared = Concurrency(1, name="shared")
    for number in range(10):
        for queue in ("a", "b"):
            add.using(concurrency=shared, queue_name=queue).enqueue(number)
    found = []
    for _ in range(6):
        [taken] = take()
        found.append(taken.queue_name)
        end(taken, OutcomeKind.SUCCEEDED)
    assert found.count("b") >= 2


def test_a_higher_priority_moves_a_partition_up() -> None:
    keyed = add.using(concurrency=Concurrency(1, key="a", name="keyed"))
    keyed.enqueue(1)
    later = keyed.enqueue(2)
    take(0)
    control.update(later.id, {"priority": 9})
    assert args(take(1)) == ["[2]"]


def test_of_very_many_notes_a_claim_deletes_some() -> None:
    """Others wait for its locks, or for the write lock of SQLite."""
    one_at_a_time.enqueue(1)
    [note] = LimitNote.objects.all()
    LimitNote.objects.bulk_create(LimitNote(subject=note.subject) for _ in range(16_000))
    assert len(take()) == 1
    assert LimitNote.objects.count() >= 1000
    for _ in range(16):
        take()
    assert not LimitNote.objects.exists()


# Claims at the same time


@pytest.mark.postgresql_only
def test_a_claim_that_does_not_wait_leaves_what_others_claim_and_says_so() -> None:
    shared = add.using(concurrency=Concurrency(5, key="a", name="shared"))
    shared.enqueue_many([((1, 1), {}), ((2, 2), {})])
    take(0)
    with another_connection() as other, transaction(other):
        fetch(
            other,
            "SELECT 1 FROM taskqueue_limiter WHERE id = %s FOR UPDATE",
            (limiter_of("shared", "1"),),
        )
        limited = take_and_tell(waits=False)
        assert args(limited.claimed) == ["[2, 2]"]
        assert limited.is_left
    assert args(take(waits=False)) == ["[1, 1]"]


@pytest.mark.postgresql_only
def test_a_claim_that_finds_only_locked_tasks_says_so() -> None:
    one_at_a_time.enqueue(1)
    take(0)
    with another_connection() as other, transaction(other):
        fetch(other, "SELECT 1 FROM taskqueue_partition FOR UPDATE")
        limited = take_and_tell()
        assert (limited.claimed, limited.is_left) == ([], True)
    limited = take_and_tell()
    assert (len(limited.claimed), limited.is_left) == (1, False)


@pytest.mark.postgresql_only
def test_a_note_of_what_others_claim_is_kept_by_a_claim_that_does_not_wait() -> None:
    one_at_a_time.enqueue_many([((1, 1), {}), ((2, 2), {})])
    [first] = take()
    end(first, OutcomeKind.SUCCEEDED)
    with another_connection() as other, transaction(other):
        fetch(other, "SELECT 1 FROM taskqueue_limiter FOR UPDATE")
        limited = take_and_tell(waits=False)
        assert (limited.claimed, limited.is_left) == ([], True)
    assert args(take(waits=False)) == ["[2, 2]"]


def test_a_partition_that_waits_alone_is_closed_when_its_last_task_is_taken() -> None:
    one_at_a_time.enqueue_many([((number, 0), {}) for number in range(4)])
    for number in range(4):
        [task] = take()
        assert json.loads(task.args) == [number, 0]
        assert Partition.objects.get().state == ("empty" if number == 3 else "waiting")
        end(task, OutcomeKind.SUCCEEDED)
    assert take() == []
    assert repairs() == 0
