"""Events that are collected become tasks: each event is in one of them."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.db.transaction import atomic, set_rollback

from taskqueue import Batch, task
from taskqueue.engine.batches import firing
from taskqueue.engine.batches.firing import fire_due, fire_group
from taskqueue.engine.connections import transaction
from taskqueue.exceptions import InvalidArguments
from taskqueue.models import Collected, Task
from taskqueue.testing import run_due, travelling
from tests.engine.steps import another_connection, run_at_once

pytestmark = pytest.mark.django_db(transaction=True)


@task(batch=Batch(max_size=3, grace=5, max_delay=60), queue_name="mail", priority=7)
def digest(events: list[Any]) -> int:
    return len(events)


@task(batch=Batch(max_size=1000, max_bytes=2000))
def small(events: list[Any]) -> list[Any]:
    return events


@task(batch=Batch(max_size=10_000, grace=5))
def patient(events: list[Any]) -> None: ...


@task
def plain(events: list[Any]) -> None: ...


def batches() -> list[list[Any]]:
    """The events of each task, in the order in which they were enqueued."""
    return [row.args[0] for row in Task.objects.order_by("id")]


def test_a_full_group_becomes_a_task_at_once() -> None:
    digest.collect_many([1, 2, 3, 4], group="a")
    digest.collect("other", group="b")
    assert [(each.events, each.is_full) for each in fire_due(connection)] == [(3, True)]
    row = Task.objects.get()
    assert (row.args, row.kwargs, row.queue_name, row.priority) == ([[1, 2, 3]], {}, "mail", 7)
    assert set(Collected.objects.values_list("group", "event")) == {("a", "4"), ("b", '"other"')}
    assert fire_due(connection) == []


def test_a_quiet_group_becomes_a_task_after_its_grace() -> None:
    digest.collect(1)
    with travelling(4):
        assert fire_due(connection) == []
        digest.collect(2)
    with travelling(8):
        assert fire_due(connection) == []
    with travelling(10):
        assert len(fire_due(connection)) == 1
    assert batches() == [[1, 2]]


def test_a_group_that_never_rests_becomes_a_task_after_its_longest_delay() -> None:
    for second in range(0, 60, 4):
        with travelling(second):
            patient.collect(second)
            assert fire_due(connection) == []
    with travelling(60):
        patient.collect(60)
        assert [each.events for each in fire_due(connection)] == [16]
    assert batches() == [[*range(0, 61, 4)]]


def test_a_batch_holds_at_most_its_bytes() -> None:
    events = ["x" * 300] * 20
    small.collect_many(events)
    with travelling(61):
        fired = []
        while found := fire_due(connection):
            fired += found
    assert sum(each.events for each in fired) == 20
    assert len(fired) == 4
    for batch in batches():
        assert len(str([batch])) < 2000
    assert not Collected.objects.exists()
    with pytest.raises(InvalidArguments, match="at most 1,996 bytes"):
        small.collect("x" * 2000)


def test_a_rollback_discards_collected_events() -> None:
    with atomic():
        digest.collect_many([1, 2, 3])
        set_rollback(True)
    assert not Collected.objects.exists()


def test_async_code_collects() -> None:
    async def collect() -> None:
        await digest.acollect(1)
        await digest.acollect_many([2, 3])

    async_to_sync(collect)()
    fire_due(connection)
    assert batches() == [[1, 2, 3]]


def test_run_due_fires_and_runs_batches() -> None:
    digest.collect_many(range(4), group="a")
    assert [run.result.return_value for run in run_due()] == [3]
    with travelling(6):
        assert [run.result.return_value for run in run_due()] == [1]


def test_an_enqueue_is_a_batch_of_its_own() -> None:
    digest.enqueue([1, 2])
    assert [run.result.return_value for run in run_due()] == [2]


def test_groups_that_are_left_to_a_newer_version_do_not_keep_others_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(firing, "MOST_BATCHES", 2)
    for number in range(7):
        digest.collect_many(range(3), group=f"a{number}")
    for row in Collected.objects.all():
        row.spec["version"] = 99
        row.save()
    digest.collect_many(range(3), group="b")
    assert [each.events for each in fire_due(connection)] == [3]
    assert Collected.objects.count() == 21
    assert caplog.text.count("newer version") == 1


def test_a_spec_of_a_newer_version_is_left_to_it(caplog: pytest.LogCaptureFixture) -> None:
    digest.collect_many([1, 2, 3], group="new")
    Collected.objects.update(spec={"version": 99})
    digest.collect_many([1, 2, 3], group="old")
    assert len(fire_due(connection)) == 1
    assert "newer version" in caplog.text
    assert Collected.objects.filter(group="new").count() == 3


def test_a_group_is_fired_by_hand_whether_it_is_due_or_not() -> None:
    digest.collect_many(range(7), group="a")
    digest.collect(1, group="b")
    assert [each.events for each in fire_group(connection, digest.name, "a")] == [3, 3, 1]
    assert batches() == [[0, 1, 2], [3, 4, 5], [6]]
    assert fire_group(connection, digest.name, "a") == []
    assert Collected.objects.count() == 1


@pytest.mark.parametrize("group", ["\x00", "\ud800", "g" * 300])
def test_a_group_that_cannot_be_has_no_events(group: str) -> None:
    assert fire_group(connection, digest.name, group) == []
    assert fire_group(connection, group, "") == []


def test_the_largest_batch_is_one_task() -> None:
    patient.collect_many(range(10_001))
    assert [(each.events, each.is_full) for each in fire_due(connection)] == [(10_000, True)]
    assert Collected.objects.count() == 1


def test_a_verb_fires_a_bounded_number_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "MOST_BATCHES", 2)
    digest.collect_many(range(7), group="a")
    assert [each.events for each in fire_group(connection, digest.name, "a")] == [3, 3]
    assert [each.events for each in fire_group(connection, digest.name, "a")] == [1]


def test_each_event_is_in_one_batch_whoever_collects_and_fires() -> None:
    callers, events, workers = 4, 60, 3

    def collect(caller: int) -> None:
        with another_connection():
            for number in range(events):
                digest.collect(caller * 1000 + number, group=f"g{number % 5}")

    def fire() -> None:
        with another_connection() as own:
            for _ in range(30):
                fire_due(own)

    run_at_once([*(partial(collect, n) for n in range(callers)), *[fire] * workers], timeout=120)
    with travelling(61):
        while fire_due(connection):
            pass
    found = Counter(event for batch in batches() for event in batch)
    wanted = {caller * 1000 + number for caller in range(callers) for number in range(events)}
    assert set(found) == wanted
    assert set(found.values()) == {1}
    assert not Collected.objects.exists()


@pytest.mark.postgresql_only
def test_a_group_of_which_somebody_has_the_first_event_is_left() -> None:
    digest.collect_many(range(6))
    first = Collected.objects.order_by("id")[0]
    with another_connection() as own, transaction(own):
        own.cursor().execute(
            "SELECT 1 FROM taskqueue_collected WHERE id = %s FOR UPDATE", [first.id]
        )
        assert fire_due(connection) == []
        assert fire_group(connection, digest.name, "") == []
    assert len(fire_due(connection)) == 1
    assert batches() == [[0, 1, 2]]
