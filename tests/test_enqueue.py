"""An enqueue writes exactly what it was asked to, in the caller's transaction."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import override_settings

from taskqueue import InvalidArguments
from taskqueue.engine.connections import installed, open_worker_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Task
from taskqueue.results import TaskResult
from taskqueue.signals import task_enqueued
from tests.engine.steps import Undo, claim, past, run_at_once, task_of
from tests.sample.tasks import add, echo, noop, unique

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def now() -> datetime:
    return dialect_for(connection).now(connection)


def test_an_enqueue_writes_one_ready_task_and_returns_what_stands_in_its_row() -> None:
    before = now()
    result = add.enqueue(1, b=2)
    task = task_of(result)
    assert (task.name, task.queue_name, task.status) == (add.name, "default", "ready")
    assert (task.args, task.kwargs) == (result.args, result.kwargs) == ([1], {"b": 2})
    assert (task.attempt, task.failures, task.crashes) == (0, 0, 0)
    assert before <= task.enqueued_at == task.run_after == task.ready_at <= now()
    assert (result.enqueued_at, result.ready_at) == (task.enqueued_at, task.ready_at)
    assert result.created
    assert not result.updated
    assert not result.is_finished


@override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False})
@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_parameters_may_be_bound_by_the_server() -> None:
    own = open_worker_connection(silence=2)
    with closing(own), installed(own):
        results = [
            add.using(priority=-5, lease_duration=60, metadata={"a": "é"}).enqueue(
                "ü", b=[None, 1.5]
            ),
            *add.enqueue_many([((1,), {"b": {"c": True}})]),
        ]
    assert [(task_of(each).args, task_of(each).kwargs) for each in results] == [
        (["ü"], {"b": [None, 1.5]}),
        ([1], {"b": {"c": True}}),
    ]
    task = task_of(results[0])
    assert (task.priority, task.lease_duration, task.metadata) == (-5, MINUTE, {"a": "é"})


PLAIN = {
    "queue_name": "mail", "priority": -100, "metadata": {"a": "\té\\"}, "max_attempts": 7,
    "max_crashes": 9, "crash_delay": timedelta(days=2, seconds=3, microseconds=4),
    "lease_duration": 90.5, "retention": 1,
}  # fmt: skip
LIMITED = {"ping_interval": 2.5, "deadline": timedelta(days=400), "expires_after": MINUTE}


@pytest.mark.parametrize("options", [PLAIN, {**PLAIN, **LIMITED}], ids=["plain", "limited"])
def test_many_tasks_have_all_columns_of_one(options: dict[str, Any]) -> None:
    chosen = add.using(**options)
    one, many = task_of(chosen.enqueue(1)), task_of(chosen.enqueue_many([((1,), {})])[0])
    assert one.crash_delay == options["crash_delay"]
    times = {"run_after", "ready_at", "deadline_at", "expires_at"}
    for field in Task._meta.concrete_fields:
        values = [getattr(task, field.name) for task in (one, many)]
        if field.name in times and None not in values:
            values = [values[0] - one.enqueued_at, values[1] - many.enqueued_at]
        if field.name not in ("id", "enqueued_at"):
            assert values[0] == values[1], field.name


def test_the_id_is_a_uuid_that_sorts_by_time() -> None:
    ids = [noop.enqueue().id for _ in range(20)]
    assert ids == sorted(ids)
    assert {each.version for each in ids} == {7}


@pytest.mark.django_db(transaction=True)
def test_an_enqueue_is_part_of_the_callers_transaction() -> None:
    with suppress(Undo), transaction.atomic():
        noop.enqueue()
        echo.enqueue_many([((1,), {}), ((2,), {})])
        async_to_sync(noop.aenqueue)()
        assert Task.objects.count() == 4
        run_at_once([nobody_else_sees_a_task])
        raise Undo
    assert not Task.objects.exists()
    with transaction.atomic():
        noop.enqueue()
    assert Task.objects.count() == 1


def nobody_else_sees_a_task() -> None:
    assert not Task.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_savepoint_that_is_rolled_back_takes_its_tasks_along() -> None:
    with transaction.atomic():
        kept = noop.enqueue()
        with suppress(Undo), transaction.atomic():
            noop.enqueue()
            raise Undo
    assert [task.id for task in Task.objects.all()] == [kept.id]


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction_an_enqueue_commits_at_once() -> None:
    noop.enqueue()
    echo.enqueue_many([((1,), {})])
    run_at_once([both_tasks_are_seen])


def both_tasks_are_seen() -> None:
    assert Task.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_async_code_enqueues_too() -> None:
    async def enqueue() -> list[TaskResult[Any]]:
        one = await add.aenqueue(1, b=2)
        return [one, *await add.aenqueue_many([((3,), {}), ((4,), {"b": 5})])]

    results = async_to_sync(enqueue)()
    assert [result.args for result in results] == [[1], [3], [4]]
    assert Task.objects.count() == 3


def test_many_tasks_stand_in_the_order_of_their_calls() -> None:
    results = echo.enqueue_many(((number,), {"n": number}) for number in range(50))
    assert [result.args for result in results] == [[number] for number in range(50)]
    assert [task_of(result).kwargs["n"] for result in results] == list(range(50))
    assert [each.task_id for each in claim()] == [str(result.id) for result in results]


def test_many_may_be_none() -> None:
    assert echo.enqueue_many([]) == []


@pytest.mark.parametrize(
    "call", [1, "ab", (1,), ((1,), {}, 3), ((1,), [2]), ("a", {}), ({}, {}), ((), None), {}]
)
def test_a_call_of_many_that_is_no_pair_of_arguments_is_refused(call: Any) -> None:
    with pytest.raises(InvalidArguments, match="pair of positional and keyword arguments"):
        echo.enqueue_many([((1,), {}), call])
    assert not Task.objects.exists()


def test_ten_thousand_tasks_are_written_at_once() -> None:
    results = echo.enqueue_many([((number,), {}) for number in range(10_000)])
    assert len({result.id for result in results}) == Task.objects.count() == 10_000
    assert [result.id for result in results] == sorted(result.id for result in results)


def test_one_bad_call_among_many_writes_nothing() -> None:
    with pytest.raises(InvalidArguments):
        echo.enqueue_many([((1,), {}), ((2,), {}), (({3},), {})])
    with pytest.raises(ZeroDivisionError):
        echo.enqueue_many(((1 / number,), {}) for number in (1, 0))
    assert not Task.objects.exists()


def test_text_that_copy_treats_specially_is_kept() -> None:
    special = ["\\.", "\\N", "a\tb", "a\nb", "a\r\nb", "\\\\", "\\x41", "\\t", '"', ""]
    other = echo.using(metadata={"special": special}, unique_for="kept")
    (result,) = other.enqueue_many([((special,), {"\t\\n": special})])
    task = task_of(result)
    assert (task.args, task.kwargs) == ([special], {"\t\\n": special})
    assert task.metadata == {"special": special}


def test_first_in_first_out_within_a_priority() -> None:
    late, early = echo.enqueue("late"), echo.enqueue("early")
    high = echo.using(priority=1).enqueue("high")
    low = echo.using(priority=-1).enqueue("low")
    last = echo.enqueue("last")
    Task.objects.filter(id__in=[early.id, low.id]).update(run_after=past())
    assert [each.task_id for each in claim()] == [
        str(result.id) for result in (high, early, late, last, low)
    ]


def test_ids_break_ties_of_the_same_moment() -> None:
    results = [noop.enqueue() for _ in range(20)]
    Task.objects.update(run_after=past())
    assert [each.task_id for each in claim()] == [str(result.id) for result in results]


def test_a_time_that_is_over_means_now_and_passes_nobody_who_waits() -> None:
    over = past() - timedelta(days=10)
    results = [
        echo.enqueue("waits"),
        echo.using(run_after=over).enqueue("alone"),
        *echo.using(run_after=over).enqueue_many([(("copied",), {})]),
        *unique.using(run_after=over).enqueue_many([(("keyed",), {})]),
        echo.using(run_after=-864_000.0).enqueue("ago"),
    ]
    assert [each.task_id for each in claim()] == [str(result.id) for result in results]
    assert all(task_of(each).run_after == each.enqueued_at for each in results)


def test_unique_tasks_of_one_enqueue_are_first_in_first_out() -> None:
    for run_after in (None, past()):
        keys = [((key,), {}) for key in ("c", "a", "b")]
        results = unique.using(run_after=run_after).enqueue_many(keys)
        assert [each.task_id for each in claim()] == [str(result.id) for result in results]
        Task.objects.all().delete()


def test_a_receiver_hears_of_every_task() -> None:
    heard: list[Any] = []

    def receiver(sender: Any, task_result: Any, **kwargs: Any) -> None:
        heard.append((sender, task_result))

    task_enqueued.connect(receiver, sender=add)
    try:
        one = add.enqueue(1)
        many = add.enqueue_many([((2,), {}), ((3,), {})])
        other = add.using(priority=5).enqueue(4)
        noop.enqueue()
    finally:
        task_enqueued.disconnect(receiver, sender=add)
    assert heard == [(add, result) for result in (one, *many, other)]


def test_texts_arrive_as_they_are_whatever_they_hold() -> None:
    told = {
        "it's": 'a "100%" \\ back\\\\slash, %s %(id)s',
        "日本": "ü\n\t$1 $$ -- /*",
        "number": 1.5,
    }
    plain = add.using(queue_name="queue-1.2", metadata=told)
    task = task_of(plain.enqueue(1, b=2))
    assert (task.queue_name, task.metadata, task.args, task.kwargs) == (
        "queue-1.2", told, [1], {"b": 2},
    )  # fmt: skip
