"""A unique key belongs to its definition, or to the scope that several definitions share."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction

from taskqueue import DuplicateTask, TaskResultMismatch
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.engine.schedules.editing import snapshot_of
from taskqueue.engine.schedules.runs import spec_from
from taskqueue.models import Task
from taskqueue.monitoring.searching.search import parse
from taskqueue.results import get_result
from taskqueue.rules import Every
from taskqueue.signals import task_enqueued
from tests.engine.steps import claim, claim_one, end, past, run_at_once, task_of
from tests.sample.tasks import add, echo, unique

pytestmark = pytest.mark.django_db
KEY: dict[str, Any] = {"unique_key": "order-42"}
SHARED: dict[str, Any] = {**KEY, "unique_scope": "orders"}


def test_two_definitions_hold_the_same_key() -> None:
    first, second = add.using(**KEY).enqueue(1), echo.using(**KEY).enqueue("x@y")
    assert (first.created, second.created) == (True, True)
    assert (second.name, second.args) == (echo.name, ["x@y"])
    assert [task_of(each).unique_scope for each in (first, second)] == [add.name, echo.name]
    assert add.using(**KEY).enqueue(2).id == first.id
    assert echo.using(**KEY).enqueue(2).id == second.id


def test_filters_and_searches_by_key_find_it_in_every_scope() -> None:
    first, second = add.using(**KEY).enqueue(1), echo.using(**KEY).enqueue()
    for search, expected in (
        ("key:order-42", {first.id, second.id}),
        (f"key:order-42 name:{add.name}", {first.id}),
    ):
        chosen = parse(search, now=past()).which
        assert tuple(chosen.unique_key) == ("order-42",)
        found = chosen.tasks(connections["default"])
        assert set(found.values_list("id", flat=True)) == expected


@pytest.mark.parametrize(
    "options",
    [{"on_duplicate": "replace"}, {"unique_for": "kept", "restart": "all"}],
    ids=lambda options: next(iter(options)),
)
def test_a_holder_of_another_definition_is_not_changed(options: dict[str, Any]) -> None:
    holder = add.using(**SHARED, unique_for="kept").enqueue(1)
    if "restart" in options:
        end(claim_one(), OutcomeKind.SUCCEEDED, return_value="1")
    before = task_of(holder)
    met = echo.using(**SHARED, **options).enqueue("x@y")
    assert (met.id, met.created, met.updated) == (holder.id, False, False)
    assert (task_of(holder).args, task_of(holder).status) == (before.args, before.status)


def test_definitions_that_share_a_scope_share_their_keys() -> None:
    holder = add.using(**SHARED).enqueue(1)
    met = echo.using(**SHARED).enqueue("x@y")
    assert (met.id, met.created, met.updated) == (holder.id, False, False)
    assert echo.using(unique_key="order-42").enqueue().created
    assert echo.using(unique_key="order-43", unique_scope="orders").enqueue().created
    assert echo.using(unique_key="order-42", unique_scope="other").enqueue().created
    assert echo.using(unique_key="order-42", unique_scope=echo.name).enqueue().name == echo.name


def test_a_handle_on_the_task_of_another_definition_says_so() -> None:
    holder = add.using(**SHARED, metadata={"a": 1}).enqueue(2, b=3)
    met = echo.using(**SHARED, queue_name="mail").enqueue("x@y")
    assert (met.name, met.args, met.kwargs, met.metadata) == (add.name, [2], {"b": 3}, {"a": 1})
    assert met.definition is add
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value="5")
    met.refresh()
    assert (met.return_value, met.name) == (5, add.name)
    assert holder.name == add.name


def test_the_holder_may_run_code_that_is_not_known_here() -> None:
    holder = add.using(**SHARED).enqueue(1)
    Task.objects.update(name="shop.tasks.gone")
    met = echo.using(**SHARED).enqueue()
    assert (met.id, met.name, met.definition) == (holder.id, "shop.tasks.gone", None)
    assert met.args == [1]


def test_a_definition_gives_no_result_of_another() -> None:
    result = add.enqueue(1)
    assert add.get_result(result.id).name == add.name
    with pytest.raises(TaskResultMismatch, match=rf"{add.name}, not to {echo.name}"):
        echo.get_result(result.id)
    assert get_result(result.id).name == add.name


def test_a_duplicate_that_raises_tells_the_scope_and_whose_task_it_is() -> None:
    holder = add.using(**SHARED).enqueue(1)
    with pytest.raises(DuplicateTask, match=r"holds the unique key 'order-42' of orders\.") as told:
        echo.using(**SHARED, on_duplicate="raise").enqueue()
    assert told.value.result == holder
    assert told.value.result.name == add.name  # type: ignore[attr-defined]


def test_no_signal_tells_of_a_task_that_was_there_before() -> None:
    heard: list[Any] = []

    def receiver(sender: Any, task_result: Any, **more: Any) -> None:
        heard.append(task_result.args)

    task_enqueued.connect(receiver)
    try:
        replacing = add.using(**KEY, on_duplicate="replace")
        for number in (1, 1, 2):
            replacing.enqueue(number)
    finally:
        task_enqueued.disconnect(receiver)
    assert heard == [[1], [2]]


def test_many_at_once_meet_holders_of_their_own_scope_alone() -> None:
    held = add.using(unique_key="a", unique_scope="letters").enqueue(1)
    own = unique.enqueue("a")
    shared = echo.using(unique_key=lambda letter: letter, unique_scope="letters")
    results = shared.enqueue_many([(("b",), {}), (("a",), {}), (("b",), {})])
    assert [each.created for each in results] == [True, False, False]
    assert [each.name for each in results] == [echo.name, add.name, echo.name]
    assert (results[1].id, results[2].id) == (held.id, results[0].id)
    assert unique.enqueue("a").id == own.id


def test_an_expired_holder_is_cleared_in_its_own_scope_alone() -> None:
    timed: dict[str, Any] = {**KEY, "unique_for": 60}
    first, other = add.using(**timed).enqueue(1), echo.using(**timed).enqueue()
    Task.objects.update(unique_until=past())
    assert add.using(**timed).enqueue(2).created
    assert not task_of(first).holds_unique_key
    assert task_of(other).holds_unique_key


def test_the_database_itself_refuses_two_holders_in_a_scope() -> None:
    add.using(**KEY).enqueue(1)
    second = echo.using(**KEY).enqueue()
    with pytest.raises(IntegrityError), transaction.atomic():
        Task.objects.filter(id=second.id).update(unique_scope=add.name)


def test_a_task_without_a_key_has_no_scope() -> None:
    one = add.using(unique_scope="orders").enqueue(1)
    later = add.using(unique_scope="orders", run_after=60).enqueue(1)
    many = add.using(unique_scope="orders").enqueue_many([((1,), {})])
    assert {task_of(each).unique_scope for each in (one, later, *many)} == {""}


def test_runs_of_a_schedule_keep_the_scope() -> None:
    scheduled = Scheduled(Every(hours=1), options=SHARED)
    snapshot = snapshot_of(scheduled, echo)
    assert snapshot["unique_key"] == "order-42"
    assert spec_from(snapshot).unique_scope == "orders"


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_definitions_that_race_for_a_shared_key_have_one_holder() -> None:
    """Enqueues of two definitions race with each other, and with claims and ends."""
    live: list[int] = []

    def enqueue(definition: Any) -> None:
        for number in range(30):
            result = definition.using(**SHARED).enqueue(number)
            assert task_name(result) in (None, result.name)
            live.append(Task.objects.filter(holds_unique_key=True, **SHARED).count())

    def task_name(result: Any) -> str | None:
        return Task.objects.filter(id=result.id).values_list("name", flat=True).first()

    def work() -> None:
        for _ in range(30):
            with transaction.atomic():
                claimed = claim(1)
            for each in claimed:
                with transaction.atomic():
                    end(each, OutcomeKind.SUCCEEDED)

    run_at_once([lambda: enqueue(add), lambda: enqueue(echo), lambda: enqueue(echo), work])
    assert set(live) <= {0, 1}
