"""Fan-outs that bodies return: their results stand in the place of the member's own."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from taskqueue import chain, fan_out, group, task, workflow
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.declarations.workflows import checking
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.rows import Claimed
from taskqueue.engine.workflows import advancing, fan_outs, members, tasks
from taskqueue.engine.workflows.fan_outs import HEADER, keep_fan_out
from taskqueue.engine.workflows.pruning import prune_workflows
from taskqueue.engine.workflows.serving import serve
from taskqueue.exceptions import LeaseEnded
from taskqueue.models import Lease, Step, StepCalls, Task, Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import Crash, run_due, run_next
from taskqueue.workflows import Builder
from tests.engine.steps import claim, outcome, policy
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import assert_settled, finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)


@task
def square(number: int) -> int:
    return number * number


@task
def odd_fails(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


@task
def spread(count: int, concurrency: int | None = None, tolerate: int = 0) -> Any:
    calls = [((number,), {}) for number in range(count)]
    return fan_out(odd_fails, calls, concurrency=concurrency, tolerate=tolerate)


@task
def squares(count: int) -> Any:
    return fan_out(square, [((number,), {}) for number in range(count)])


@task
def tree(depth: int, width: int, path: str = "") -> Any:
    """The leaves of a tree, by their paths."""
    if not depth:
        return path
    return fan_out(tree, [((depth - 1, width, f"{path}{n}"), {}) for n in range(width)])


@task
def canvases(count: int) -> Any:
    return fan_out([square.s(number) | add.s(100) for number in range(count)])


@task
def callbacks() -> Any:
    return fan_out(group(square.s(2), square.s(3)).on_success(echo.s()))


@task
def deep_canvas(depth: int) -> Any:
    return fan_out([deep_canvas.s(depth - 1), square.s(2)]) if depth else "leaf"


@task
def endless(depth: int) -> Any:
    return fan_out(endless, [((depth + 1,), {})])


@task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@task
def total_of_pages(numbers: Any, length: int) -> list[Any]:
    assert not isinstance(numbers, list)
    return [sum(numbers), length, len(numbers), numbers[-1], numbers[1:3]]


attempts: list[int] = []


@task(max_crashes=3, crash_delay=0)
def crashes_once(count: int) -> Any:
    """Dies after its calls were written, at its first attempt."""
    attempts.append(count)
    if len(attempts) > 1:
        return fan_out(square, [((number,), {}) for number in range(count)])
    row = Lease.objects.get(status="running")
    keep_fan_out(
        connection,
        fan_out(square, [((1000 + number,), {}) for number in range(3 * count)]),
        lease_id=row.id,
        task_id=str(row.task_id),
    )
    raise Crash


@pytest.fixture(autouse=True)
def forget() -> None:
    attempts.clear()


@pytest.fixture(autouse=True, params=[100, 2], ids=["few", "chunks"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many calls are kept in one row; others in chunks of their own."""
    monkeypatch.setattr(fan_outs, "FEW", request.param)
    return int(request.param)


def leaves(depth: int, width: int, path: str = "") -> Any:
    return [leaves(depth - 1, width, f"{path}{n}") for n in range(width)] if depth else path


def test_the_results_of_a_fan_out_are_the_result_of_its_step() -> None:
    run = finish(chain(squares.s(5), total.s()).enqueue())
    assert run.status == "succeeded"
    assert run.return_value == 30
    assert statuses(run) == {
        "squares": "succeeded",
        "total": "succeeded",
        "squares[0]": "succeeded",
    }
    assert_settled(run)


def test_fan_outs_are_nested_at_will() -> None:
    run = finish(tree.s(3, 3).enqueue())
    assert run.return_value == leaves(3, 3)
    assert Task.objects.count() == 1 + 3 + 9 + 27
    assert_settled(run)


def test_a_map_has_the_results_of_fan_outs_in_their_places() -> None:
    run = finish(chain(tree.starmap([(1, 2, "a"), (0, 2, "b"), (2, 1, "c")]), echo.s()).enqueue())
    assert run.return_value == [[[["a0", "a1"], "b", [["c00"]]]], {}]
    assert_settled(run)


def test_a_fan_out_without_calls_gives_an_empty_list() -> None:
    run = finish(chain(squares.s(0), total.s()).enqueue())
    assert run.return_value == 0
    assert_settled(run)


def test_a_map_goes_on_behind_a_member_whose_fan_out_has_no_calls() -> None:
    @workflow(name="tests.one_by_one")
    def one_by_one(wf: Builder) -> None:
        wf.step(squares.map([0, 2, 0]), concurrency=1)

    run = finish(one_by_one.enqueue())
    assert run.return_value == [[], [0, 1], []]
    assert_settled(run)


def test_a_canvas_that_is_returned_runs_as_a_workflow_of_its_own() -> None:
    run = finish(chain(canvases.s(3), total.s()).enqueue())
    assert run.return_value == 100 + 101 + 104
    assert Workflow.objects.count() == 2
    assert_settled(run)


def test_a_returned_canvas_keeps_its_callbacks() -> None:
    run = finish(callbacks.s().enqueue())
    assert run.return_value == [4, 9]
    assert Task.objects.get(name=echo.name).return_value == [[[4, 9]], {}]


def test_members_of_a_returned_canvas_fan_out_too() -> None:
    run = finish(deep_canvas.s(3).enqueue())
    assert run.return_value == [[["leaf", 4], 4], 4]
    assert_settled(run)


def test_a_failed_member_of_a_fan_out_fails_the_step_whose_member_returned_it() -> None:
    run = finish(chain(spread.s(4), total.s()).enqueue())
    assert run.status == "failed"
    assert statuses(run)["spread"] == "failed"
    assert statuses(run)["total"] == "cancelled"
    assert run.error is not None
    assert run.error["message"] == "1 is odd"
    assert run.errors["spread"]["error_class"] == "builtins.ValueError"
    assert_settled(run)


def test_a_fan_out_tolerates_failures() -> None:
    run = finish(spread.s(4, tolerate=2).enqueue())
    assert run.status == "succeeded"
    assert run.return_value == [0, None, 2, None]
    assert_settled(run)


def test_a_map_tolerates_members_whose_fan_outs_fail() -> None:
    @workflow(name="tests.tolerates_fans")
    def tolerates(wf: Builder) -> None:
        parts = wf.step(spread.map([1, 4, 1]), tolerate=1, name="parts")
        wf.step(echo.s(parts))

    run = finish(tolerates.enqueue())
    assert run.status == "succeeded"
    assert run.return_value == [[[[0], None, [0]]], {}]
    assert_settled(run)


def test_a_fan_out_sends_as_many_as_it_may() -> None:
    run = spread.s(6, concurrency=2, tolerate=3).enqueue()
    run_next()
    serve(connection)
    assert Task.objects.filter(name=odd_fails.name).count() == 2
    finish(run)
    assert run.return_value == [0, None, 2, None, 4, None]
    assert_settled(run)


def test_a_fan_out_that_cannot_succeed_drops_what_it_has_not_sent() -> None:
    run = finish(spread.s(6, concurrency=1).enqueue())
    assert run.status == "failed"
    assert Task.objects.filter(name=odd_fails.name).count() == 2
    assert_settled(run)


def test_a_step_that_may_fail_may_have_a_fan_out_that_fails() -> None:
    @workflow(name="tests.may_fail_by_fan", fail_fast=True)
    def may_fail(wf: Builder) -> None:
        parts = wf.step(spread.s(6, concurrency=1), on_failure="continue", name="parts")
        wf.step(echo.s(parts), name="after")

    run = finish(may_fail.enqueue())
    assert run.status == "succeeded"
    assert statuses(run)["parts"] == "failed"
    assert run.return_value == [[None], {}]
    assert_settled(run)


def test_calls_of_an_attempt_that_was_lost_do_not_run() -> None:
    run = finish(crashes_once.s(3).enqueue())
    assert run.return_value == [0, 1, 4]
    assert Task.objects.filter(name=square.name).count() == 3
    assert_settled(run)


def test_calls_of_a_task_that_failed_for_good_are_deleted() -> None:
    @task(name="tests.keeps_and_fails")
    def keeps_and_fails() -> None:
        lease = Lease.objects.get(status="running")
        calls = fan_out(square, [((1,), {})])
        keep_fan_out(connection, calls, lease_id=lease.id, task_id=str(lease.task_id))
        raise ValueError("no")

    run = finish(keeps_and_fails.s().enqueue())
    assert run.status == "failed"
    assert not StepCalls.objects.exists()


def test_a_lease_that_has_ended_writes_no_calls() -> None:
    squares.s(3).enqueue()
    [claimed] = claim(1)
    Lease.objects.filter(id=claimed.lease_id).update(status="lost", finished_at="2026-01-01T00:00Z")
    calls = fan_out(square, [((1,), {})])
    with pytest.raises(LeaseEnded):
        keep_fan_out(connection, calls, lease_id=claimed.lease_id, task_id=claimed.task_id)
    assert not StepCalls.objects.exists()


def test_a_late_attempt_leaves_the_calls_of_the_one_that_runs(few: int) -> None:
    squares.s(3).enqueue()
    [first] = claim(1)
    Lease.objects.filter(id=first.lease_id).update(status="lost", finished_at="2026-01-01T00:00Z")
    Task.objects.filter(id=first.task_id).update(status="ready")
    [second] = claim(1)
    calls = fan_out(square, [((n,), {}) for n in range(3)])
    keep_fan_out(connection, calls, lease_id=second.lease_id, task_id=second.task_id)
    with pytest.raises(LeaseEnded):
        keep_fan_out(connection, calls, lease_id=first.lease_id, task_id=first.task_id)
    places = [HEADER] if few >= 3 else [HEADER, 0]
    kept = StepCalls.objects.order_by("first_place").values_list("lease_id", "first_place")
    assert list(kept) == [(second.lease_id, place) for place in places]


def test_a_fan_out_outside_of_a_workflow_fails_and_names_the_remedy() -> None:
    result = squares.enqueue(3)
    run_due(errors="record")
    result.refresh()
    assert result.status == "failed"
    assert result.attempts == 1
    assert result.errors[0].exception_class_path == "taskqueue.exceptions.InvalidWorkflow"
    assert "Enqueue it as one: squares.s(...).enqueue()" in result.errors[0].message


def test_fan_outs_are_nested_ten_deep_at_most() -> None:
    run = finish(endless.s(1).enqueue())
    assert run.status == "failed"
    assert run.error is not None
    assert "nested at most 10 deep" in run.error["message"]
    assert Task.objects.filter(name=endless.name).count() == 10
    assert_settled(run)


def test_a_canvas_that_returns_itself_is_nested_ten_deep_at_most() -> None:
    run = finish(deep_canvas.s(20).enqueue())
    assert run.status == "failed"
    assert Task.objects.filter(name=deep_canvas.name).count() == 10
    assert_settled(run)


def test_more_members_than_a_workflow_may_have_fail_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checking, "MAX_MEMBERS", 10)
    run = finish(tree.s(2, 4).enqueue())
    assert run.status == "failed"
    assert run.error is not None
    assert "at most 10 members in all" in run.error["message"]
    assert_settled(run)


def test_a_retry_has_the_body_run_again_whose_calls_could_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = squares.s(3).enqueue()
    with monkeypatch.context() as less:
        less.setattr(checking, "MAX_MEMBERS", 3)
        assert finish(run).status == "failed"
        run.retry()
        assert finish(run).status == "failed", "It fails again."
    run.retry()
    assert finish(run).return_value == [0, 1, 4]
    assert Task.objects.get(name=squares.name).attempt == 3
    assert Workflow.objects.get(id=run.id).members == 1 + 3
    assert_settled(run)


def test_more_calls_than_a_fan_out_may_have_fail_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MAX_CALLS", 10)
    run = finish(squares.s(11).enqueue())
    assert run.status == "failed"
    assert run.error is not None
    assert "at most 10 calls" in run.error["message"]


def test_calls_are_kept_in_chunks_and_sent_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "CHUNK", 4)
    run = spread.s(11, concurrency=3, tolerate=5).enqueue()
    run_next()
    assert {0, 4, 8} <= set(StepCalls.objects.values_list("first_place", flat=True))
    assert Task.objects.filter(name=odd_fails.name).count() == 3
    finish(run)
    assert run.return_value == [None if number % 2 else number for number in range(11)]
    assert_settled(run)


def test_more_fan_outs_than_one_transaction_sends_follow_in_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advancing, "MOST_MEMBERS", 100)
    run = squares.map([60, 30, 20, 100, 1, 0, 50]).enqueue()
    outcomes = []
    for claimed, count in zip(claim(7), [60, 30, 20, 100, 1, 0, 50], strict=True):
        calls = fan_out(square, [((number,), {}) for number in range(count)])
        keep_fan_out(connection, calls, lease_id=claimed.lease_id, task_id=claimed.task_id)
        outcomes.append(outcome(claimed, OutcomeKind.SUCCEEDED)._replace(has_fan=True))
    with transaction(connection):
        record(connection, outcomes, policy=policy())
    assert serve(connection)
    assert Task.objects.filter(name=square.name).count() == 261
    finish(run)
    assert [len(each) for each in run.return_value] == [60, 30, 20, 100, 1, 0, 50]
    assert_settled(run)


def test_a_paused_workflow_sends_no_member_of_a_fan_out() -> None:
    run = squares.s(3).enqueue()
    run.pause()
    finish(run)
    assert Task.objects.filter(name=square.name).count() == 0
    run.resume()
    finish(run)
    assert run.return_value == [0, 1, 4]
    assert_settled(run)


def test_a_cancelled_workflow_sends_no_more_calls_of_a_fan_out() -> None:
    run = spread.s(6, concurrency=2, tolerate=6).enqueue()
    run_next()
    serve(connection)
    run.cancel("not needed")
    finish(run)
    assert run.status == "cancelled"
    assert Task.objects.filter(name=odd_fails.name).count() == 2
    assert_settled(run)


def returns_while_stopping(calls: Any) -> tuple[WorkflowRun, Claimed]:
    """A workflow that was cancelled while its step ran, which returned the calls; and the claim."""
    run = squares.s(3).enqueue()
    [claimed] = claim(1)
    keep_fan_out(connection, calls, lease_id=claimed.lease_id, task_id=claimed.task_id)
    run.cancel("not needed")
    success = outcome(claimed, OutcomeKind.SUCCEEDED)._replace(has_fan=True)
    with transaction(connection):
        assert record(connection, [success], policy=policy())
    return finish(run), claimed


def test_a_fan_out_that_is_returned_while_its_workflow_stops_does_not_run() -> None:
    run, claimed = returns_while_stopping(fan_out(square, [((n,), {}) for n in range(3)]))
    assert Task.objects.get(id=claimed.task_id).status == "succeeded"
    assert run.status == "cancelled"
    assert Task.objects.filter(name=square.name).count() == 0
    assert_settled(run)
    run.retry()
    assert finish(run).return_value == [0, 1, 4]
    assert Task.objects.get(id=claimed.task_id).attempt == 1
    assert Workflow.objects.get(id=run.id).members == 1 + 3
    assert_settled(run)


def test_a_canvas_that_is_returned_while_its_workflow_stops_runs_after_a_retry() -> None:
    run, _claimed = returns_while_stopping(fan_out(square.si(2) | square.s()))
    assert run.status == "cancelled"
    assert set(Task.objects.filter(name=square.name).values_list("status", "attempt")) == {
        ("cancelled", 0)
    }
    assert_settled(run)
    run.retry()
    assert finish(run).return_value == [16]
    assert Workflow.objects.get(id=run.id).members == 1 + 2
    assert_settled(run)


def test_members_of_a_fan_out_have_the_deadline_of_the_workflow() -> None:
    @workflow(name="tests.fans_with_deadline", deadline=3600)
    def limited(wf: Builder) -> None:
        wf.step(squares.s(2), name="squares")

    run = limited.enqueue()
    run_next()
    serve(connection)
    limits = set(Task.objects.filter(name=square.name).values_list("deadline_at", flat=True))
    assert limits == {Workflow.objects.get(id=run.id).deadline_at}
    finish(run)
    assert_settled(run)


def read_lazily(wf: Builder) -> None:
    numbers = wf.step(squares.s(7), name="numbers")
    wf.step(total_of_pages.s(numbers.lazy(), numbers.length()), name="total")


@workflow(name="tests.lazy_map")
def lazy_map(wf: Builder) -> None:
    numbers = wf.step(square.map(range(7)), name="numbers")
    wf.step(total_of_pages.s(numbers.lazy(), numbers.length()), name="total")


lazy_fan = workflow(name="tests.lazy_fan")(read_lazily)


@pytest.mark.parametrize("lazy", [lazy_map, lazy_fan])
def test_a_lazy_list_is_read_in_pages(lazy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "PAGE", 3)
    # Pages are smaller than what a whole list may be.
    monkeypatch.setattr(members, "LARGEST_LIST", 6)
    run = finish(lazy.enqueue())
    assert run.errors == {}
    monkeypatch.undo()
    run.refresh()
    assert run.return_value == [91, 7, 7, 36, [1, 4]]


def test_a_list_that_is_too_large_fails_its_reader_and_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members, "LARGEST_LIST", 6)
    run = finish(chain(square.map(range(7)), total.s()).enqueue())
    assert run.status == "failed"
    assert run.error is not None
    assert "parts.lazy()" in run.error["message"]
    assert Task.objects.get(name=total.name).attempt == 1


def test_results_are_read_in_more_than_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "ROWS", 2)
    monkeypatch.setattr(members, "BATCH", 2)
    run = finish(tree.s(2, 5).enqueue())
    assert run.return_value == leaves(2, 5)


def test_a_long_name_leaves_room_for_the_place() -> None:
    @workflow(name="tests.long_names")
    def long_names(wf: Builder) -> None:
        wf.step(tree.s(2, 2), name="n" * 100)

    run = finish(long_names.enqueue())
    assert run.return_value == leaves(2, 2)
    assert len({step.name for step in run.steps.values()}) == 4
    assert all(len(name) <= 100 for name in run.steps)


def test_fan_outs_go_with_their_workflow() -> None:
    run: WorkflowRun = finish(canvases.s(2).enqueue())
    Workflow.objects.filter(id=run.id).update(prune_after="2020-01-01T00:00Z")
    while prune_workflows(connection):
        pass
    assert not Step.objects.exists()
    assert not Task.objects.exists()


def test_a_failed_body_of_a_fan_out_is_told_with_its_task() -> None:
    @task(name="tests.fans_to_fail")
    def fans_to_fail() -> Any:
        return fan_out(fail, [(("first",), {}), (("second",), {})])

    run = finish(fans_to_fail.s().enqueue())
    assert run.error is not None
    assert run.error["message"] == "first"
    assert run.error["task_id"] == str(Task.objects.filter(name=fail.name).order_by("id")[0].id)
