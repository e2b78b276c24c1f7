"""Arguments of many calls that are encoded while the server reads: what a caller sees of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import transaction
from django.utils.safestring import mark_safe

from taskqueue import InvalidArguments, task
from taskqueue.engine.payloads import BLOCK, LatePayloads
from taskqueue.models import Task
from taskqueue.results.payloads import payloads_of
from tests.engine.steps import task_of
from tests.sample.tasks import noop, unique

pytestmark = pytest.mark.django_db
MANY = BLOCK + 100
Calls = list[tuple[tuple[Any, ...], dict[str, Any]]]


@task
def keep(one: Any, other: Any = None) -> None:
    """Nothing; its row has the arguments."""


def plain(number: int = MANY) -> Calls:
    return [((each,), {}) for each in range(number)]


class Rows(Sequence[int]):
    """A sequence that asks the database whenever somebody looks at it, as a query set does."""

    def __len__(self) -> int:
        return Task.objects.count()

    def __getitem__(self, place: Any) -> Any:
        return range(Task.objects.count())[place]


def test_plain_calls_are_encoded_late_and_stored_as_they_are() -> None:
    values = (1, -(2**63), "é\t\\N", None, True, 0.5, 1e300, "")
    calls = [((value, number), {}) for number in range(MANY // 8) for value in values]
    assert isinstance(payloads_of(keep, calls, None), LatePayloads)
    results = keep.enqueue_many(calls)
    assert [each.args for each in results] == [list(args) for args, _ in calls]
    kept = Task.objects.order_by("id").values_list("args", flat=True)
    assert list(kept) == [list(args) for args, _ in calls]


@pytest.mark.parametrize(
    "last", [((mark_safe("a"),), {}), (([1],), {}), ((), {"one": 1}), ((b"a",), {})]
)
def test_other_calls_are_encoded_before_anything_is_written(last: Any) -> None:
    assert not isinstance(payloads_of(keep, [*plain(), last], None), LatePayloads)


def test_calls_with_a_key_are_encoded_before_anything_is_written() -> None:
    calls = [((str(number),), {}) for number in range(MANY)]
    assert not isinstance(payloads_of(unique, calls, None), LatePayloads)


def test_calls_may_be_read_from_the_database_one_by_one() -> None:
    noop.enqueue()

    def calls() -> Iterator[Any]:
        for number in range(MANY):
            yield (number, Task.objects.count()), {}

    results = keep.enqueue_many(calls())
    assert [each.args for each in results] == [[number, 1] for number in range(MANY)]


def test_a_lazy_argument_may_ask_the_database() -> None:
    noop.enqueue()
    results = keep.enqueue_many([*plain(), ((Rows(),), {})])
    assert task_of(results[-1]).args == [[0]]
    assert Task.objects.count() == MANY + 2


@pytest.mark.parametrize("wrong", [2**63, float("nan"), "a\x00", "\ud800", "x" * 70_000])
def test_a_refused_last_call_writes_nothing_and_leaves_a_transaction_that_goes_on(
    wrong: Any,
) -> None:
    with pytest.raises(InvalidArguments) as alone:
        keep.enqueue(wrong)
    with transaction.atomic():
        noop.enqueue()
        with pytest.raises(InvalidArguments) as among:
            keep.enqueue_many([*plain(), ((wrong,), {})])
        noop.enqueue()
    assert str(among.value) == str(alone.value)
    assert Task.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_refused_last_call_writes_nothing_outside_of_a_transaction() -> None:
    with pytest.raises(InvalidArguments):
        keep.enqueue_many([*plain(), ((2**63,), {})])
    assert not Task.objects.exists()
    assert len(keep.enqueue_many(plain())) == Task.objects.count() == MANY


def test_the_first_call_that_is_wrong_is_named() -> None:
    def calls(then: Any) -> Iterator[Any]:
        yield from plain()
        yield (float("nan"),), {}
        yield from plain()
        if isinstance(then, Exception):
            raise then
        yield then

    for then in ("no call", (({1},), {}), ((), {"one": object()}), ZeroDivisionError()):
        with pytest.raises(InvalidArguments, match="nan, which JSON does not have"):
            keep.enqueue_many(calls(then))
    assert not Task.objects.exists()


def test_calls_may_share_an_object_that_changes_between_them() -> None:
    def calls() -> Iterator[Any]:
        shared: list[int] = []
        named: dict[str, int] = {}
        yield from plain()
        for number in range(3):
            shared.append(number)
            named["other"] = number
            yield (shared,), named

    results = keep.enqueue_many(calls())
    assert [(each.args, task_of(each).kwargs) for each in results[-3:]] == [
        ([[0]], {"other": 0}), ([[0, 1]], {"other": 1}), ([[0, 1, 2]], {"other": 2}),
    ]  # fmt: skip


def test_ids_rise_in_the_order_of_the_calls() -> None:
    ids = [each.id for each in keep.enqueue_many(plain(3 * BLOCK))]
    assert ids == sorted(ids)
    assert len(set(ids)) == 3 * BLOCK


@pytest.mark.parametrize("last", ["é", None, True, 0.5, 1e300, -(2**63), "a" * 1000])
def test_columns_of_many_types_are_stored_as_single_calls_are(last: Any) -> None:
    calls = [((number, "a"), {}) for number in range(MANY)]
    calls += [((last, last), {}), ((7,), {}), ((7, 1.5), {})]
    results = keep.enqueue_many(calls)
    assert [each.args for each in results] == [list(args) for args, _ in calls]
    stored = [task_of(each) for each in results[-3:]]
    assert [(each.args, each.kwargs) for each in stored] == [
        (list(args), {}) for args, _ in calls[-3:]
    ]
    assert [str(each.id) for each in results[-3:]] == [str(each.pk) for each in stored]


def test_whoever_looks_at_a_later_payload_takes_none_from_another_reader() -> None:
    late = payloads_of(keep, plain(4 * BLOCK), None)
    assert isinstance(late, LatePayloads)
    rows, blocks = iter(late), late.columns()
    first, block = next(rows), next(blocks)
    assert late[3 * BLOCK].args == f"[{3 * BLOCK}]"
    assert [first.args, *(each.args for each in rows)] == [f"[{n}]" for n in range(4 * BLOCK)]
    assert sum(len(each.args) for each in (block, *blocks)) == 4 * BLOCK
