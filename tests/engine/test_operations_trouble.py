"""Operations when somebody holds tasks, another worker serves too, or a chunk cannot be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.operations import serving
from taskqueue.engine.operations.asking import cancel_operation, held_count, start_operation
from taskqueue.engine.operations.serving import NEXT_OPERATION
from taskqueue.engine.statement import change
from taskqueue.models import Operation, Task
from tests.engine.operation_steps import audited, fail, figures, fill, seen, statuses
from tests.engine.steps import another_connection, past, run_at_once

pytestmark = pytest.mark.django_db(transaction=True)

FAILED = TaskFilter(statuses=["failed"])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CHUNK", 5)
    monkeypatch.setattr(serving, "MOST_HELD", 5)


def rested() -> None:
    """Let the pauses be over."""
    Operation.objects.update(progressed_at=past())


def serve(worker: BaseDatabaseWrapper, most: int = 200) -> None:
    for _ in range(most):
        if not serving.step(worker):
            return
    raise AssertionError("It goes on and on.")


@pytest.mark.parametrize(
    ("verb", "arguments", "after"),
    [
        ("cancel", {}, {"cancelled": 7, "failed": 7}),
        ("run_now", {}, {"ready": 7, "failed": 7}),
        ("reschedule", {"run_after": 60}, {"scheduled": 7, "failed": 7}),
        ("reschedule", {"run_after": 0}, {"ready": 7, "failed": 7}),
        ("update", {"changes": {"priority": 5, "timeout": 3}}, {"scheduled": 7, "failed": 7}),
        ("duplicate", {}, {"scheduled": 7, "failed": 7, "ready": 14}),
        ("delete", {}, {"scheduled": 7}),
        ("retry", {}, {"scheduled": 7, "ready": 7}),
        ("stop", {}, {"scheduled": 7, "failed": 7}),
    ],
)
def test_on_a_worker_s_own_connection_each_verb_does_the_same(
    verb: str, arguments: dict[str, Any], after: dict[str, int]
) -> None:
    """It binds parameters on the server, which must know their types."""
    fail(7)
    fill(7, run_after=timedelta(hours=1))
    operation = start_operation(verb, TaskFilter(everything=True), arguments=arguments)
    with another_connection() as worker:
        serve(worker)
    status, matched, done = figures(operation)
    assert (status, matched) == ("finished", done)
    assert statuses() == after


def test_an_error_leaves_nothing_half_done_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail(12)
    operation = start_operation("retry", FAILED)
    break_verb(monkeypatch, "retry", times=2)
    with another_connection() as worker:
        assert serving.step(worker)
        assert (seen(operation).status, seen(operation).done) == ("running", 0)
        assert statuses() == {"failed": 12}
        assert "it broke" in seen(operation).error
        assert not serving.step(worker), "it rests after an error"
        rested()
        assert serving.step(worker)
        rested()
        serve(worker)
    assert figures(operation) == ("finished", 12, 12)
    assert seen(operation).error == ""
    assert set(audited("retry").values()) == {1}


def test_with_too_many_errors_it_has_failed_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail(3)
    fill(3, run_after=timedelta(hours=1))
    bad = start_operation("retry", FAILED)
    good = start_operation("run_now", TaskFilter(statuses=["scheduled"]))
    break_verb(monkeypatch, "retry", times=100)
    with another_connection() as worker:
        for _ in range(serving.ERROR_TRIES):
            serve(worker)
            rested()
        serve(worker)
    assert figures(good) == ("finished", 3, 3)
    assert figures(bad)[::2] == ("failed", 0)
    assert seen(bad).error == "ValueError: it broke"
    assert seen(bad).finished_at is not None
    assert statuses() == {"failed": 3, "ready": 3}


def test_a_statement_that_the_database_refuses_is_such_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail(3)
    operation = start_operation("retry", FAILED)

    def refused(connection: BaseDatabaseWrapper, ids: Sequence[Any], **more: Any) -> list[Any]:
        change(connection, "SELECT 1 FROM nowhere")
        return []

    monkeypatch.setitem(BULK_VERBS, "retry", replace(BULK_VERBS["retry"], each=refused))
    with another_connection() as worker:
        for _ in range(serving.ERROR_TRIES):
            assert serving.step(worker)
            rested()
    assert seen(operation).status == "failed"


def break_verb(monkeypatch: pytest.MonkeyPatch, name: str, *, times: int) -> None:
    """Let it fail so often, after it has done its work."""
    verb, left = BULK_VERBS[name], [times]

    def broken(*given: Any, **named: Any) -> Any:
        done = verb.each(*given, **named)
        if left[0]:
            left[0] -= 1
            raise ValueError("it broke")
        return done

    monkeypatch.setitem(BULK_VERBS, name, replace(verb, each=broken))


@pytest.mark.postgresql_only
def test_an_operation_returns_to_locked_tasks() -> None:
    ids = sorted(fail(12))
    operation = start_operation("retry", FAILED)
    with another_connection() as worker:
        with transaction.atomic():
            list(Task.objects.select_for_update().filter(id__in=ids[:2]))
            serve(worker)
            assert figures(operation) == ("running", 12, 10)
            assert held_count(seen(operation)) == 2
        assert not serving.step(worker), "it waits a second"
        rested()
        serve(worker)
    assert figures(operation) == ("finished", 12, 12)
    assert set(audited("retry").values()) == {1}


@pytest.mark.postgresql_only
def test_tasks_locked_for_long_count_as_refused_in_the_end() -> None:
    ids = sorted(fail(20))
    operation = start_operation("retry", FAILED)
    with another_connection() as worker, transaction.atomic():
        list(Task.objects.select_for_update().filter(id__in=ids[2:14]))
        with another_connection() as clock:
            for _ in range(40):
                serving.step(worker)
                change(clock, "UPDATE taskqueue_operation SET progressed_at = NULL")
        assert figures(operation) == ("finished", 20, 8)
        assert held_count(seen(operation)) == 0


@pytest.mark.postgresql_only
def test_two_workers_never_have_the_same_chunk() -> None:
    fail(60)
    operation = start_operation("retry", FAILED)
    with another_connection() as first, another_connection() as second:
        with serving.orm_transaction(first):
            list(Operation.objects.using("default").select_for_update().all())
            assert not serving.step(second)
        run_at_once([lambda: serve(first), lambda: serve(second)])
        serve(first)
    assert figures(operation) == ("finished", 60, 60)
    assert set(audited("retry").values()) == {1}


def test_an_operation_cancelled_by_another_session_ends() -> None:
    fail(12)
    operation = start_operation("retry", FAILED)
    with another_connection() as worker:
        serving.step(worker)
        cancel_operation(operation.id)
        serve(worker)
    assert figures(operation) == ("cancelled", 5, 5)


@pytest.mark.postgresql_only
def test_a_lost_connection_is_not_the_operation_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    fail(3)
    operation, verb = start_operation("retry", FAILED), BULK_VERBS["retry"]
    with another_connection() as worker, another_connection() as default:

        def lost(*given: Any, **named: Any) -> Any:
            change(default, "SELECT pg_terminate_backend(%s)", [worker.connection.info.backend_pid])
            return verb.each(*given, **named)

        monkeypatch.setitem(BULK_VERBS, "retry", replace(BULK_VERBS["retry"], each=lost))
        with pytest.raises(OperationalError):
            serving.step(worker)
    assert (seen(operation).status, seen(operation).error) == ("waiting", "")


def test_an_idle_look_costs_no_statement_more(django_assert_num_queries: Any) -> None:
    """Whether there is an operation is asked with what the duties ask anyhow."""
    from tests.engine.steps import promote

    assert not promote().is_over(NEXT_OPERATION)
    with django_assert_num_queries(1):
        promote()
    operation = start_operation("retry", FAILED)
    assert promote().is_over(NEXT_OPERATION)
    cancel_operation(operation.id)
    assert not promote().is_over(NEXT_OPERATION)
