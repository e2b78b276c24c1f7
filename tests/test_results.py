"""A result is a handle on a task: as last read, read again on demand, waited for, or missed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections, transaction

import taskqueue
from taskqueue import TaskDoesNotExist, chain
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.record import write_notes
from taskqueue.engine.rows import Note
from taskqueue.models import Task
from taskqueue.results import TaskResult, get_result
from taskqueue.testing import run_next
from tests.engine.steps import (
    claim,
    claim_one,
    default_connection,
    end,
    end_overdue,
    make_due,
    past,
    promote,
    task_of,
)
from tests.sample.tasks import add, echo, noop, talk
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db
OF_ATTEMPTS = ("errors", "history", "progress", "cancelled_by", "cancel_reason", "worker_names")


def finished(kind: OutcomeKind = OutcomeKind.SUCCEEDED, **fields: Any) -> TaskResult[Any]:
    result = echo.enqueue()
    end(claim_one(), kind, **fields)
    return result


def test_a_result_stands_as_it_was_last_read() -> None:
    result = add.enqueue(1, b=2)
    claimed = claim_one()
    assert (result.status, result.attempts) == ("ready", 0)
    result.refresh()
    assert (result.status, result.attempts, result.is_finished) == ("running", 1, False)
    end(claimed, OutcomeKind.SUCCEEDED, return_value="3")
    assert result.status == "running"
    result.refresh()
    assert (result.status, result.return_value, result.is_finished) == ("succeeded", 3, True)
    task = task_of(result)
    assert (result.started_at, result.finished_at) == (task.started_at, task.finished_at)
    assert result.enqueued_at <= result.ready_at <= result.finished_at  # type: ignore[operator]
    assert (result.name, result.args, result.kwargs) == (add.name, [1], {"b": 2})


def test_async_code_can_read_a_result_after_refreshing_it() -> None:
    result = echo.using(max_attempts=2).enqueue()
    claimed = claim_one()
    write_notes(default_connection, [Note(claimed.lease_id, 1.0, 40.0, "well on")])
    end(claimed, OutcomeKind.FAILED, error_class="E", error_message="why")

    async def look() -> tuple[Any, ...]:
        await result.arefresh()
        return [error.message for error in result.errors], result.progress, result.worker_names

    assert async_to_sync(look)() == (["why"], (40.0, "well on"), ["w1"])


async def read_every_attribute(result: TaskResult[Any]) -> list[Any]:
    return [getattr(result, name) for name in ("args", "kwargs", "metadata", *OF_ATTEMPTS)]


def test_async_code_may_look_through_what_async_methods_found() -> None:
    shared: dict[str, Any] = {"unique_key": "k", "unique_scope": "sums"}
    holder = add.using(**shared, max_attempts=2).enqueue(1, b=2)
    end(claim_one(), OutcomeKind.FAILED, error_class="E", error_message="why")

    async def look() -> list[list[Any]]:
        met = await noop.using(**shared).aenqueue()
        assert (met, met.created) == (holder, False)
        found = await add.aget_result(holder.id)
        return [await read_every_attribute(each) for each in (met, found)]

    for args, kwargs, metadata, errors, history, *rest in async_to_sync(look)():
        assert (args, kwargs, metadata) == ([1], {"b": 2}, {})
        assert [error.message for error in errors] == ["why"]
        assert [attempt.worker_name for attempt in history] == ["w1"]
        assert rest == [(None, ""), "", "", ["w1"]]


def test_async_code_may_look_through_what_its_verbs_left() -> None:
    async def look() -> list[list[Any]]:
        result = await add.aenqueue(1)
        await result.acancel("a mistake", by="ann")
        again = await result.aretry(args=[2])
        return [await read_every_attribute(each) for each in (result, again)]

    cancelled, again = async_to_sync(look)()
    assert cancelled[-3:-1] == ["ann", "a mistake"]
    assert again[0] == [2]


@pytest.mark.parametrize("name", OF_ATTEMPTS)
def test_an_error_tells_async_code_to_read_first(name: str) -> None:
    async def look() -> Any:
        result = await noop.aenqueue()
        with pytest.raises(SynchronousOnlyOperation, match=r"await result\.arefresh\(\)"):
            getattr(result, name)
        await result.arefresh()
        return getattr(result, name)

    assert async_to_sync(look)() in ([], "", (None, ""))


def test_async_code_reads_it_again_too() -> None:
    result = noop.enqueue()
    claim()
    async_to_sync(result.arefresh)()
    assert result.status == "running"


def test_a_result_is_found_again_by_its_id() -> None:
    result = add.using(metadata={"a": 1}).enqueue(1)
    for found in (
        get_result(result.id),
        get_result(str(result.id)),
        get_result(result.id.hex),
        add.get_result(result.id),
        async_to_sync(add.aget_result)(result.id),
    ):
        assert found == result
        assert hash(found) == hash(result)
        assert (found.name, found.args, found.metadata) == (add.name, [1], {"a": 1})
        assert found.definition is add
        assert not found.created
    assert result != noop.enqueue()
    assert str(result.id) in repr(result)
    assert "ready" in repr(result)


def test_a_result_of_a_definition_that_is_gone_can_still_be_read() -> None:
    result = add.enqueue(1)
    Task.objects.filter(id=result.id).update(name="shop.gone")
    found = get_result(result.id)
    assert (found.name, found.args, found.definition) == ("shop.gone", [1], None)


@pytest.mark.parametrize("key", [uuid4(), str(uuid4())])
def test_a_task_that_is_not_there_does_not_exist(key: Any) -> None:
    with pytest.raises(TaskDoesNotExist, match="never committed, or it was pruned"):
        get_result(key)
    with pytest.raises(TaskDoesNotExist):
        add.get_result(key)


@pytest.mark.parametrize("key", ["", "x", 5, None, "0" * 31])
def test_an_invalid_id_names_no_task(key: Any) -> None:
    with pytest.raises(TaskDoesNotExist, match="is not the id of a task"):
        get_result(key)


def test_a_task_that_was_pruned_does_not_exist_any_more() -> None:
    result = noop.enqueue()
    Task.objects.all().delete()
    for call in (result.refresh, result.wait, async_to_sync(result.arefresh)):
        with pytest.raises(TaskDoesNotExist):
            call()


@pytest.mark.django_db(transaction=True)
def test_a_task_that_was_rolled_back_never_existed() -> None:
    with transaction.atomic():
        result = noop.enqueue()
        transaction.set_rollback(True)
    with pytest.raises(TaskDoesNotExist):
        result.refresh()


@pytest.mark.parametrize("text", ["null", None])
def test_a_body_that_returns_nothing_gives_none(text: str | None) -> None:
    result = finished(return_value=text)
    result.refresh()
    assert result.return_value is None


@pytest.mark.parametrize(
    ("kind", "verb"), [(OutcomeKind.FAILED, "has"), (OutcomeKind.CANCELLED, "is")]
)
def test_a_task_that_did_not_succeed_has_no_return_value(kind: OutcomeKind, verb: str) -> None:
    result = finished(kind)
    result.refresh()
    with pytest.raises(ValueError, match=f"{verb} {result.status} and has no return value"):
        _ = result.return_value


def test_a_task_that_has_not_finished_has_no_return_value_yet() -> None:
    result = noop.enqueue()
    with pytest.raises(ValueError, match="is ready: it has not finished yet"):
        _ = result.return_value
    claim()
    result.refresh()
    with pytest.raises(ValueError, match="is running: it has not finished yet"):
        _ = result.return_value


def test_errors_stand_oldest_first_and_are_kept_on_success() -> None:
    result = noop.using(max_attempts=5, crash_delay=0).enqueue()
    for number, kind in enumerate(
        (OutcomeKind.FAILED, OutcomeKind.LOST, OutcomeKind.RETRY_LATER, OutcomeKind.SNOOZED), 1
    ):
        claimed = claim_one(worker=f"w{number}")
        error = {"error_class": f"shop.E{number}", "error_message": f"m{number}"}
        if kind is OutcomeKind.SNOOZED:
            error = {"error_message": "again in 0 s"}
        end(claimed, kind, **error, traceback=f"t{number}")
        make_due(result)
        promote()
    end(claim_one(worker="w5"), OutcomeKind.SUCCEEDED)
    result.refresh()
    assert result.attempts == 5
    assert [astuple(error) for error in result.errors] == [
        (f"shop.E{n}", f"m{n}", f"t{n}", n, f"w{n}") for n in (1, 2, 3)
    ]
    assert result.worker_names == ["w1", "w2", "w3", "w4", "w5"]


def test_an_error_of_no_attempt_is_told_as_well() -> None:
    result = noop.using(deadline=60).enqueue()
    assert result.errors == []
    Task.objects.update(deadline_at=past())
    end_overdue()
    result.refresh()
    (error,) = result.errors
    assert error.exception_class_path == "taskqueue.exceptions.DeadlineExceeded"
    assert (error.attempt, error.worker_name, error.traceback) == (0, "", "")


def test_progress_is_that_of_the_latest_attempt() -> None:
    result = noop.enqueue()
    assert result.progress == (None, "")
    first = claim_one()
    write_notes(default_connection, [Note(first.lease_id, 0.0, 40.0, "nearly half")])
    assert (result.progress.percent, result.progress.message) == (40.0, "nearly half")
    end(first, OutcomeKind.RETURNED)
    claim()
    assert result.progress == (None, "")


def test_a_wait_for_what_has_finished_returns_at_once() -> None:
    result = finished(return_value="5")
    assert result.wait(0) is result
    assert result.return_value == 5
    assert async_to_sync(result.async_wait)(0) is result


@pytest.mark.parametrize("timeout", [0, 0.01, -1])
def test_a_wait_that_is_too_short_times_out_and_tells_the_status(timeout: float) -> None:
    result = noop.enqueue()
    claim()
    for wait in (result.wait, async_to_sync(result.async_wait)):
        with pytest.raises(TimeoutError, match=rf"{result.id} is running after {timeout} s"):
            wait(timeout)
    assert result.status == "running"


def test_a_wait_in_a_transaction_says_that_workers_cannot_see_what_it_enqueued() -> None:
    hint = "within a transaction.*wait after the atomic"
    with transaction.atomic():
        result = noop.enqueue()
        chained = chain(noop.si(), noop.si()).enqueue()
        for handle in (result, chained):
            for wait in (handle.wait, async_to_sync(handle.async_wait)):
                with pytest.raises(TimeoutError, match=hint):
                    wait(0)


@contextmanager
def ending_meanwhile(kind: OutcomeKind, **fields: Any) -> Iterator[None]:
    """Another process' worker ends the one task, once somebody waits for it."""

    def work() -> None:
        try:
            with transaction.atomic():
                claimed = claim_one()
            with transaction.atomic():
                end(claimed, kind, **fields)
        finally:
            connections.close_all()

    worker = Thread(target=work, daemon=True)
    worker.start()
    try:
        yield
    finally:
        worker.join(60)
        assert not worker.is_alive()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", [OutcomeKind.SUCCEEDED, OutcomeKind.FAILED, OutcomeKind.CANCELLED])
def test_a_wait_ends_when_the_task_does_whatever_came_of_it(kind: OutcomeKind) -> None:
    for name in ("wait", "async_wait"):
        result = noop.enqueue()
        wait = getattr(result, name)
        with ending_meanwhile(kind):
            waited = async_to_sync(wait)(60) if name == "async_wait" else wait(60)
        assert waited is result
        assert result.is_finished


@pytest.mark.django_db(transaction=True)
def test_a_result_shows_changes_after_a_refresh() -> None:
    result = noop.enqueue()
    with ending_meanwhile(OutcomeKind.SUCCEEDED, return_value='"done"'):
        wait_until(lambda: get_result(result.id).is_finished, timeout=60)
    assert result.status == "ready"
    result.refresh()
    assert result.return_value == "done"


def test_log_lines_are_read_in_their_order_by_attempt_and_level() -> None:
    result = talk.using(max_attempts=2).enqueue(2)
    run_next()
    assert [line.message[:6] for line in result.logs()] == ["line 0", "line 1", "said b"]
    [warning] = async_to_sync(result.alogs)(level=logging.WARNING)
    assert (warning.attempt, warning.level) == (1, logging.WARNING)
    assert warning.logger == "tests.sample.tasks"
    for name in ("warning", "WARNING", "Warning"):
        assert result.logs(level=name) == [warning]
    with pytest.raises(ValueError, match="No level is named 'loud'"):
        result.logs(level="loud")
    assert result.logs(attempt=1) == result.logs()
    assert result.logs(attempt=2) == []
    assert taskqueue.get_result(result.id).logs() == result.logs()
