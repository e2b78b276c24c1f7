"""Compensations undo what succeeded in a workflow that fails or is cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from taskqueue import control, fan_out, group, task, workflow
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Step, Task, Workflow
from taskqueue.results.workflows import get_workflow
from taskqueue.testing import run_due, run_next
from taskqueue.workflows import Builder
from tests.sample.tasks import add, echo
from tests.workflows.steps_of import assert_settled, finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)

# What the bodies did, in order; names that fail.
DONE: list[str] = []
BAD: set[str] = set()


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    DONE.clear()
    BAD.clear()
    BAD.add("ship")
    yield
    DONE.clear()
    BAD.clear()


@task
def do(name: str, *before: object) -> str:
    if name in BAD:
        raise ValueError(f"{name} is bad")
    DONE.append(name)
    return f"{name} done"


@task
def undo(result: Any, name: str = "") -> None:
    name = name or str(result)
    if f"undo {name}" in BAD:
        raise LookupError(f"cannot undo {name}")
    DONE.append(f"undo {name}")


@task
def spread(count: int) -> Any:
    return fan_out(do, [((f"part {number}",), {}) for number in range(count)])


@workflow(name="tests.order")
def order(wf: Builder) -> None:
    paid = wf.step(do.s("pay"), name="pay", compensate=undo.s())
    packed = wf.step(do.s("pack", paid), name="pack", compensate=undo.s(name="packing"))
    shipped = wf.step(do.s("ship", packed), name="ship", compensate=undo.s())
    wf.step(do.s("tell", shipped), name="tell")


@workflow(name="tests.around_order")
def around(wf: Builder) -> None:
    booked = wf.step(do.s("book"), name="book", compensate=undo.s())
    inner = wf.step(order.s(), name="inner", after=booked)
    wf.step(do.si("end"), name="end", after=inner)


def test_succeeded_steps_are_compensated_in_reverse_order_with_their_results() -> None:
    run = finish(order.enqueue())
    assert run.status == "failed"
    assert DONE == ["pay", "pack", "undo packing", "undo pay done"]
    assert run.error == {
        "error_class": "builtins.ValueError", "message": "ship is bad",
        "task_id": str(Task.objects.get(status="failed").id),
    }  # fmt: skip
    assert statuses(run) == {
        "pay": "succeeded", "pack": "succeeded", "ship": "failed", "tell": "cancelled",
        "pack (compensation)": "succeeded", "pay (compensation)": "succeeded",
    }  # fmt: skip
    assert_settled(run)


def test_compensations_run_one_by_one_while_the_workflow_says_so() -> None:
    run = order.using(unique_key="one").enqueue()
    for _ in range(3):
        run_next(errors="record")
    run.refresh()
    assert (run.status, run.is_finished) == ("compensating", False)
    assert not order.using(unique_key="one").enqueue().created
    assert Task.objects.filter(status="ready").count() == 1
    with pytest.raises(TransitionRefused, match="compensating"):
        run.cancel()
    with pytest.raises(TransitionRefused, match="compensating"):
        run.retry()
    run_next(errors="record")
    run.refresh()
    assert (run.status, DONE[-1]) == ("compensating", "undo packing")
    assert finish(run).status == "failed"


def test_a_workflow_that_succeeds_undoes_nothing() -> None:
    BAD.clear()
    run = finish(order.enqueue())
    assert run.status == "succeeded"
    assert DONE == ["pay", "pack", "ship", "tell"]
    assert not Step.objects.filter(compensates_id__isnull=False).exists()


def test_a_cancelled_workflow_is_compensated() -> None:
    run = order.enqueue()
    run_next()
    run.cancel("enough")
    run.refresh()
    assert finish(run).status == "cancelled"
    assert DONE == ["pay", "undo pay done"]
    assert_settled(run)


def test_a_compensation_that_fails_is_named_and_the_others_run() -> None:
    BAD.add("undo packing")
    run = finish(order.enqueue())
    assert run.status == "failed"
    assert run.error is not None
    assert run.error["message"] == "ship is bad (compensations that failed: pack)"
    assert DONE == ["pay", "pack", "undo pay done"]
    assert run.errors["pack (compensation)"]["error_class"] == "builtins.LookupError"
    assert_settled(run)


def test_a_cancelled_workflow_whose_compensation_fails_has_failed() -> None:
    BAD.add("undo pay done")
    run = order.enqueue()
    run_next()
    run.cancel("enough")
    assert finish(run).status == "failed"
    assert run.error is not None
    assert run.error["message"] == "cannot undo pay done (compensations that failed: pay)"


def test_a_pause_keeps_compensations_back() -> None:
    run = order.enqueue()
    run_next()
    run_next()
    task = Task.objects.get(status="ready")
    run.pause()
    run_due(errors="record")
    task.refresh_from_db()
    run.refresh()
    assert (task.status, run.status, DONE) == ("failed", "running", ["pay", "pack"])
    run.resume()
    assert finish(run).status == "failed"
    assert DONE == ["pay", "pack", "undo packing", "undo pay done"]
    assert_settled(run)


def test_a_paused_workflow_that_is_cancelled_compensates() -> None:
    run = order.enqueue()
    run_next()
    run_next()
    run.pause()
    run_due(errors="record")
    run.cancel()
    finish(run)
    assert run.status == "failed"
    assert DONE[-1] == "undo pay done"


@task
def undo_by_calls(result: Any) -> Any:
    return fan_out(do, [(("refund",), {})])


@task
def undo_by_canvas(result: Any) -> Any:
    return fan_out(do.si("refund") | do.si("tell"))


@workflow(name="tests.paused_and_undone")
def paused_and_undone(wf: Builder, has_canvas: bool) -> None:
    compensation = undo_by_canvas if has_canvas else undo_by_calls
    paid = wf.step(do.s("pay"), name="pay", compensate=compensation.s())
    wf.step(do.s("pack", paid), name="pack")


@pytest.mark.parametrize("has_canvas", [False, True])
def test_compensations_of_a_paused_workflow_that_is_cancelled_fan_out(has_canvas: bool) -> None:
    run = paused_and_undone.enqueue(has_canvas)
    run_next()
    run.pause()
    run.cancel()
    assert finish(run).status == "cancelled"
    assert DONE[:2] == ["pay", "refund"]
    assert_settled(run)


def test_a_retry_after_compensations_runs_all_anew() -> None:
    run = finish(order.enqueue())
    BAD.clear()
    with pytest.raises(TransitionRefused, match="have been compensated"):
        run.resolve("ship", "by hand")
    with pytest.raises(TransitionRefused, match="have been compensated"):
        control.retry(Task.objects.get(status="failed").id)
    run.refresh()
    assert run.status == "failed"
    DONE.clear()
    run.retry()
    assert finish(run).status == "succeeded"
    assert DONE == ["pay", "pack", "ship", "tell"]
    assert list(run.steps) == ["pay", "pack", "ship", "tell"]
    assert Task.objects.count() == 4
    row = Workflow.objects.get()
    assert (row.total_steps, row.open_steps, row.members, row.error) == (4, 0, 4, None)
    assert_settled(run)


def test_nobody_retries_from_a_compensation() -> None:
    run = finish(order.enqueue())
    with pytest.raises(TransitionRefused, match=r"'pay .compensation.' is a compensation"):
        run.retry(from_step="pay (compensation)")
    with pytest.raises(TransitionRefused, match="is a compensation"):
        run.resolve("pay (compensation)", 1)
    assert finish(run).status == "failed"
    assert_settled(run)


@task
def undo_in_parts(result: Any) -> Any:
    return fan_out(group(undo.si(number) for number in range(3)) | echo.s())


def test_compensations_that_return_a_canvas_are_counted_once() -> None:
    @workflow(name="tests.undone_in_parts")
    def undone(wf: Builder) -> None:
        paid = wf.step(do.s("pay"), name="pay", compensate=undo_in_parts.s())
        wf.step(do.s("ship", paid), name="ship")

    run = finish(undone.enqueue())
    assert Workflow.objects.get(id=run.id).members == 2 + 1 + 4
    run.retry()
    assert Workflow.objects.get(id=run.id).members == 2
    finish(run)
    assert Workflow.objects.get(id=run.id).members == 2 + 1 + 4
    assert_settled(run)


def test_a_retried_workflow_that_fails_is_compensated_again() -> None:
    run = finish(order.enqueue())
    DONE.clear()
    run.retry()
    assert finish(run).status == "failed"
    assert DONE == ["pay", "pack", "undo packing", "undo pay done"]
    assert_settled(run)


def test_a_child_compensates_before_its_parent() -> None:
    run = finish(around.enqueue())
    assert run.status == "failed"
    assert DONE == ["book", "pay", "pack", "undo packing", "undo pay done", "undo book done"]
    child = Workflow.objects.get(name=order.name)
    assert_settled(run)
    assert_settled(get_workflow(child.id))
    BAD.clear()
    DONE.clear()
    run.retry()
    assert finish(run).status == "succeeded"
    assert DONE == ["book", "pay", "pack", "ship", "tell", "end"]


def test_callbacks_are_called_after_compensations() -> None:
    run = finish(order.s().on_failure(echo.s()).enqueue())
    assert run.status == "failed"
    said = Task.objects.get(name=echo.name)
    assert said.return_value[0][0]["message"] == "ship is bad"
    # Ids are in the order of creation.
    assert Task.objects.order_by("id").last() == said


def test_compensations_run_after_the_deadline_has_passed() -> None:
    run = order.using(deadline=3600).enqueue()
    run_next()
    Workflow.objects.update(deadline_at="2020-01-01T00:00Z")
    finish(run)
    assert run.status == "failed"
    assert run.error is not None
    assert run.error["error_class"].endswith("DeadlineExceeded")
    assert DONE == ["pay", "undo pay done"]


def test_maps_and_fan_outs_are_compensated_with_their_lists() -> None:
    @workflow(name="tests.compensated_lists")
    def lists(wf: Builder) -> None:
        sums = wf.step(add.starmap([(1, 2), (3, 4)]), name="sums", compensate=undo.s())
        fan = wf.step(spread.si(2), name="fan", compensate=undo.s(), after=sums)
        wf.step(do.s("ship", fan), name="ship")

    run = finish(lists.enqueue())
    assert run.status == "failed"
    assert DONE == [
        "part 0", "part 1", "undo ['part 0 done', 'part 1 done']", "undo [3, 7]",
    ]  # fmt: skip
    assert_settled(run)
