"""Places that pass from a task that has ended to the next one of its partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue import control
from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.limits import Concurrency, Fair, Rate
from taskqueue.engine.connections import transaction
from taskqueue.engine.limit_rows import PassingTerms
from taskqueue.engine.postgresql.limit_pass import Passed, pass_on
from taskqueue.engine.record import record
from taskqueue.engine.retention import EndPolicy
from taskqueue.models import Lease, LimitNote, Partition, Slot, Task
from tests.engine.limit_steps import args, repairs, take, take_and_tell
from tests.engine.steps import LEASE, another_connection, outcome, past
from tests.sample.tasks import add, noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]

two_a_key = add.using(concurrency=Concurrency(2, key="a", name="key"))


def begin(count: int, want: int = 100) -> dict[int, str]:
    """Take what has a place of so many tasks of one key; the leases that may pass places on."""
    two_a_key.enqueue_many([((1, number), {}) for number in range(count)])
    limited = take_and_tell(want)
    assert limited.passing.keys() == {row.lease_id for row in limited.claimed}
    return limited.passing


def end_and_pass(
    ended: dict[int, str],
    kind: OutcomeKind = OutcomeKind.SUCCEEDED,
    *,
    connection: BaseDatabaseWrapper | None = None,
    **options: Any,
) -> Passed:
    """Record these leases and claim what follows, as a worker does."""
    connection = connection or connections["default"]
    with transaction(connection):
        return end_and_pass_within(connection, ended, kind, **options)


def end_and_pass_within(
    connection: BaseDatabaseWrapper,
    ended: dict[int, str],
    kind: OutcomeKind = OutcomeKind.SUCCEEDED,
    *,
    unknown: Sequence[str] = (),
    most: int = 0,
    queues: Sequence[str] = ("default",),
) -> Passed:
    leases = Lease.objects.in_bulk(list(ended))
    record(
        connection,
        [outcome(_claimed(lease), kind) for lease in leases.values()],
        policy=EndPolicy.of(get_settings()),
        passing=list(ended) if kind == OutcomeKind.SUCCEEDED else (),
    )
    return pass_on(connection, ended, PassingTerms("w1", list(queues), list(unknown), LEASE, most))


def _claimed(lease: Lease) -> Any:
    return type("Row", (), {"lease_id": lease.id})


def running() -> set[int]:
    return set(Lease.objects.filter(finished_at=None).values_list("id", flat=True))


def places() -> set[int]:
    return set(Slot.objects.values_list("lease_id", flat=True))


def test_the_next_tasks_take_the_places_and_nobody_has_to_look() -> None:
    ended = begin(5)
    passed = end_and_pass(ended)
    assert args(passed.claimed) == ["[1, 2]", "[1, 3]"]
    assert not passed.has_news
    assert not passed.has_others
    assert places() == running() == set(passed.passing)
    assert not LimitNote.objects.exists()
    assert Partition.objects.get().state == "waiting"
    assert take() == []

    again = end_and_pass(passed.passing)
    assert args(again.claimed) == ["[1, 4]"]
    assert again.has_news, "A place is free."
    assert take() == []
    end_and_pass(again.passing)
    assert take() == []
    assert (Partition.objects.get().state, places()) == ("empty", set())
    assert not LimitNote.objects.exists()
    assert Task.objects.filter(status="succeeded").count() == 5


def test_each_place_begins_when_the_one_before_has_ended() -> None:
    passed = end_and_pass(begin(3))
    [lease] = Lease.objects.filter(id__in=[row.lease_id for row in passed.claimed])
    for before in Lease.objects.exclude(finished_at=None):
        assert before.finished_at is not None
        assert lease.claimed_at >= before.finished_at


def test_fewer_pass_on_once_the_limit_allows_fewer() -> None:
    ended = begin(6)
    control.override_limit("key", concurrency=1)
    passed = end_and_pass(ended, most=100)
    assert len(passed.claimed) == 1
    control.override_limit("key", concurrency=0)
    assert end_and_pass(passed.passing, most=100).claimed == []
    assert take() == []
    control.reset_limit("key")
    assert len(take()) == 2
    assert repairs() == 0


def test_nothing_passes_on_while_more_run_than_the_limit_allows_now() -> None:
    ended = begin(6)
    control.override_limit("key", concurrency=1)
    [first, second] = ended.items()
    assert end_and_pass(dict([first]), most=100).claimed == []
    assert len(end_and_pass(dict([second]), most=100).claimed) == 1


def test_another_partition_that_waits_for_the_limit_goes_first() -> None:
    ended = begin(6)
    two_a_key.using(queue_name="other").enqueue(1, 9)
    assert take() == []
    passed = end_and_pass(ended, most=100)
    assert passed.claimed == []
    assert "[1, 9]" in args(take())


def test_beside_what_is_open_or_ready_only_some_pass_on() -> None:
    ended = begin(6)
    noop.enqueue()
    passed = end_and_pass(ended, most=1)
    assert len(passed.claimed) == 1
    assert passed.has_others
    assert passed.has_news, "One was given back."
    assert end_and_pass(passed.passing).claimed == []


def test_a_note_is_looked_at_first() -> None:
    ended = begin(6)
    two_a_key.using(priority=5).enqueue(2, 0)
    assert end_and_pass(ended).claimed == []
    assert args(take(1)) == ["[2, 0]"]


def test_the_best_task_of_the_partition_takes_the_place() -> None:
    ended = begin(4)
    two_a_key.using(priority=5).enqueue(1, 9)
    assert take() == []
    assert args(end_and_pass(ended).claimed) == ["[1, 9]", "[1, 2]"]


@pytest.mark.parametrize("options", [{"unknown": [add.name]}, {"queues": ["other"]}])
def test_only_what_this_worker_knows_and_serves_takes_a_place(options: dict[str, Any]) -> None:
    assert end_and_pass(begin(4), most=100, **options).claimed == []
    assert len(take()) == 2


def test_a_paused_task_is_not_passed_a_place() -> None:
    ended = begin(6)
    first, second = (dict([pair]) for pair in ended.items())
    control.pause("default")
    assert end_and_pass(first, most=100).claimed == []
    control.resume("default")
    control.pause_definition(add.name)
    assert end_and_pass(second, most=100).claimed == []
    control.resume_definition(add.name)
    assert len(take()) == 2


def test_a_queue_that_was_limited_meanwhile_counts_its_own_places() -> None:
    ended = begin(6)
    control.limit_queue("default", concurrency=1)
    assert end_and_pass(ended, most=100).claimed == []
    assert len(take()) == 1
    assert take() == []


def test_places_of_tenants_rates_and_hosts_do_not_pass_on() -> None:
    for options in (
        {"fair": Fair("a"), "concurrency": Concurrency(1, key="a", name="tenant")},
        {"rate": Rate("10/s"), "concurrency": Concurrency(1, name="rated")},
        {"concurrency": [Concurrency(1, name="hosts", per="host"), Concurrency(1, name="all")]},
    ):
        add.using(**options).enqueue_many([((1, 0), {})] * 2)
        limited = take_and_tell(1)
        assert (len(limited.claimed), limited.passing) == (1, {})


def test_an_unstarted_attempt_gives_its_place_back_without_passing_it_on() -> None:
    ended = begin(4)
    assert end_and_pass(ended, OutcomeKind.UNSTARTED).claimed == []
    assert places() == set()
    assert len(take()) == 2
    assert repairs() == 0


def test_passing_skips_tasks_that_another_session_has_locked() -> None:
    ended = begin(5)
    first, second = (dict([pair]) for pair in ended.items())
    with another_connection() as other, transaction(other):
        held = end_and_pass_within(other, first)
        passed = end_and_pass(second)
    assert sorted(args([*held.claimed, *passed.claimed])) == ["[1, 2]", "[1, 3]"]
    assert places() == running() == {*held.passing, *passed.passing}


def test_a_lease_that_ended_elsewhere_has_no_place_to_pass_on() -> None:
    ended = begin(4)
    Lease.objects.update(finished_at=past(), status="lost")
    assert end_and_pass(ended, most=100).claimed == []
