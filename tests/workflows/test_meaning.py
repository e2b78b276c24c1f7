"""The meaning of ends of steps for the steps behind them, and for their workflow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings
from django.utils import timezone

from taskqueue import chain, current, group, task, workflow
from taskqueue.backend.tasks import QueueTask
from taskqueue.control import run_now
from taskqueue.declarations.workflows import checking
from taskqueue.exceptions import DuplicateWorkflow, TransitionRefused
from taskqueue.models import Member, Task, Workflow
from taskqueue.results.workflows import get_workflow
from taskqueue.testing import arun_due, run_due, run_next
from taskqueue.workflows import Builder, mermaid, standalone_svg
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import assert_settled, finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)


@task
def look() -> dict[str, Any]:
    return {"a": [{"b": 7}, "text"], "n": 3, "none": None}


@task
def where(before: object = None) -> list[Any]:
    own = current().workflow
    return [str(own.id), own.name, own.step, own.place, own.schedule, own.nominal_at]


@workflow(name="tests.selects")
def selects(wf: Builder) -> None:
    seen = wf.step(look.s(), name="look")
    wf.step(
        echo.s(seen["a"][0]["b"], seen["n"], last=seen["a"][-1], size=seen["a"].length()),
        name="parts",
    )


def test_parts_of_results_are_selected() -> None:
    run = finish(selects.enqueue())
    assert run.return_value == [[7, 3], {"last": "text", "size": 2}]


@workflow(name="tests.selects_wrongly")
def selects_wrongly(wf: Builder) -> None:
    seen = wf.step(look.s(), name="look")
    wf.step(echo.s(seen["a"][9]), name="beyond")
    wf.step(echo.s(seen["none"]["deeper"]), name="nothing")
    wf.step(add.map(seen["n"]), name="items")
    wf.step(add.starmap(seen["a"]), name="rows")
    wf.step(echo.s(), when=seen["b"] == 1, name="asks")


def test_parts_that_are_not_there_fail_the_step() -> None:
    run = finish(selects_wrongly.enqueue())
    assert statuses(run) == {
        "look": "succeeded",
        "beyond": "failed",
        "nothing": "failed",
        "items": "failed",
        "rows": "failed",
        "asks": "failed",
    }
    for name in ("beyond", "nothing", "items", "rows", "asks"):
        assert run.errors[name]["error_class"] == "taskqueue.exceptions.InvalidWorkflow", name


@workflow(name="tests.branches")
def branches(wf: Builder, rows: int) -> None:
    seen = wf.step(echo.s(rows), name="seen")
    many = wf.step(echo.s("many"), when=seen[0][0] > 5, name="many")
    few = wf.step(echo.s("few"), when=seen[0][0] <= 5, name="few")
    wf.step(echo.s(many, few), name="join")
    wf.step(echo.s(many), name="behind-many")
    wf.step(echo.si(), after=many.ended, name="ended")
    wf.step(echo.si(), after=many.failed, name="failed")
    wf.step(echo.si(), after=[few.ended, "join"], name="both")


def test_conditions_choose_branches_and_a_join_runs_behind_both() -> None:
    run = finish(branches.enqueue(3))
    assert run.status == "succeeded"
    assert statuses(run) == {
        "seen": "succeeded",
        "many": "skipped",
        "few": "succeeded",
        "join": "succeeded",
        "behind-many": "skipped",
        "ended": "skipped",
        "failed": "skipped",
        "both": "succeeded",
    }
    assert run.return_value["join" if "join" in run.return_value else "both"] is not None
    joined = Task.objects.get(step__name="join")
    assert joined.return_value == [[None, [["few"], {}]], {}]
    assert_settled(run)


@workflow(name="tests.continues")
def continues(wf: Builder) -> None:
    bad = wf.step(fail.s(), on_failure="continue", name="bad")
    wf.step(echo.s(bad, bad.error), name="reads")
    wf.step(echo.si(1), after=bad.failed, name="handler")
    wf.step(echo.si(1), after=bad.ended, name="always")
    wf.step(echo.si(1), after=bad, name="goes-on")


def test_a_step_that_may_fail_gives_none_and_the_workflow_succeeds() -> None:
    run = finish(continues.enqueue())
    assert run.status == "succeeded"
    assert set(statuses(run).values()) == {"failed", "succeeded"}
    read = Task.objects.get(step__name="reads").return_value[0]
    failed = Task.objects.get(step__name="bad")
    assert read[0] is None
    assert read[1] == {
        "error_class": "builtins.ValueError",
        "message": "it failed",
        "task_id": str(failed.id),
    }
    assert run.errors == {"bad": read[1]}
    assert_settled(run)


def test_a_share_of_a_map_over_a_result_may_fail() -> None:
    @workflow(name="tests.share")
    def share(wf: Builder, share: float) -> None:
        seen = wf.step(echo.s(1, "x", 3, 4), name="seen")
        wf.step(add.map(seen[0]), tolerate=share, name="parts")

    run = finish(share.enqueue(0.25))
    assert run.return_value == [2, None, 4, 5]
    run = finish(share.enqueue(0.24))
    assert run.status == "failed"


@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled", "deadline"])
def test_callbacks_of_a_workflow_are_enqueued_at_each_end(end: str) -> None:
    canvas = chain(add.s(1, 2) if end != "failed" else fail.s(), echo.s())
    called = (
        canvas.on_success(echo.using(queue_name="success").s("s"))
        .on_failure(echo.using(queue_name="failure").s("f"))
        .on_end(echo.using(queue_name="end").s("e"))
    )
    run = called.enqueue()
    if end == "cancelled":
        run.cancel()
    if end == "deadline":
        Workflow.objects.filter(id=run.id).update(deadline_at=timezone.now())
    run_due(errors="record")
    run.refresh()
    assert run.status == ("failed" if end == "deadline" else end)
    calls = {
        each.queue_name: each.return_value[0]
        for each in Task.objects.filter(step=None, name=echo.name)
    }
    if end == "succeeded":
        assert calls == {"success": [[[3], {}], "s"], "end": [[[3], {}], "e"]}
    elif end == "cancelled":
        assert calls == {"end": [None, "e"]}
    else:
        error = dict(run.error or {})
        assert calls == {"failure": [error, "f"], "end": [None, "e"]}
        if end == "deadline":
            assert error["error_class"] == "taskqueue.exceptions.DeadlineExceeded"


def test_released_tasks_have_the_earlier_deadline() -> None:
    @workflow(name="tests.deadlines", deadline=timedelta(hours=1))
    def deadlines(wf: Builder) -> None:
        wf.step(echo.using(deadline=60).s(), name="own")
        wf.step(echo.using(deadline=7200).s(), name="whole")

    run = deadlines.enqueue()
    row = Workflow.objects.get(id=run.id)
    own, whole = (Task.objects.get(step__name=name) for name in ("own", "whole"))
    assert own.deadline_at is not None
    assert row.deadline_at is not None
    assert own.deadline_at < row.deadline_at
    assert whole.deadline_at == row.deadline_at


def test_an_expired_task_fails_its_step() -> None:
    run = chain(echo.using(expires_after=1).s(), echo.s()).enqueue()
    Task.objects.exclude(expires_at=None).update(expires_at=timezone.now())
    finish(run)
    assert list(statuses(run).values()) == ["failed", "cancelled"]
    assert run.status == "failed"
    assert_settled(run)


def test_a_body_knows_where_it_stands() -> None:
    run = finish((where.map([1, 2]) | where.s()).enqueue())
    name = run.name
    assert run.return_value == [str(run.id), name, "where-2", 0, "", None]
    first = [task.return_value for task in Task.objects.filter(step__name="where").order_by("id")]
    assert first == [[str(run.id), name, "where", place, "", None] for place in (0, 1)]


def double(number: int) -> int:
    return 2 * number


DOUBLE = QueueTask(func=double)


def test_tasks_of_djangos_framework_run_as_steps() -> None:
    run = finish((DOUBLE.s(3) | DOUBLE.s() | group(DOUBLE.s(), DOUBLE.s()) | echo.s()).enqueue())
    assert run.return_value == [[[24, 24]], {}]


def test_a_paused_workflow_holds_its_children_back_too() -> None:
    @workflow(name="tests.inner_chain")
    def inner(wf: Builder) -> None:
        wf.step(chain(add.s(1, 1), add.s(1), add.s(1)), name="all")

    @workflow(name="tests.outer_pause")
    def outer(wf: Builder) -> None:
        wf.step(inner.s(), name="inner")

    run = outer.enqueue()
    run_next()
    run.pause()
    done = Task.objects.filter(status="succeeded").count()
    finish(run)
    assert Task.objects.filter(status="succeeded").count() <= done + 1
    run.resume()
    assert finish(run).return_value == 4


def test_a_workflow_of_a_newer_format_is_left_alone() -> None:
    run = chain(add.s(1, 2), add.s(10)).enqueue()
    Workflow.objects.update(format=99)
    finish(run)
    assert list(statuses(run).values()) == ["running", "waiting"]
    assert run.status == "running"
    for verb in (run.cancel, run.pause, run.retry):
        with pytest.raises(TransitionRefused, match="newer version"):
            verb()
    Workflow.objects.update(format=1)
    assert finish(run).return_value == 13
    assert_settled(run)


@workflow(name="tests.too_many")
def too_many(wf: Builder) -> None:
    seen = wf.step(echo.s(1, 2, 3, 4), name="seen")
    wf.step(add.map(seen[0]), name="parts")
    wf.step(add.s(1, 1), name="other")


@pytest.mark.parametrize(
    ("bound", "reason"), [("MAX_CALLS", "at most 3 calls"), ("MAX_MEMBERS", "at most 3 members")]
)
def test_bounds_that_are_found_at_run_time_fail_the_step(
    bound: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, bound, 3)
    run = finish(too_many.enqueue())
    assert statuses(run) == {"seen": "succeeded", "parts": "failed", "other": "succeeded"}
    assert reason in run.errors["parts"]["message"]
    monkeypatch.undo()
    run.retry()
    assert finish(run).return_value == {"parts": [2, 3, 4, 5], "other": 2}


@override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False})
def test_errors_of_members_are_reported_by_their_places() -> None:
    run = finish(add.map([1, "x", 3, "y"]).limited(concurrency=None, tolerate=2).enqueue())
    assert (run.status, run.errors) == ("succeeded", {})
    errors = run.errors_of("add")
    assert list(errors) == [1, 3]
    assert errors[1]["error_class"] == "builtins.TypeError"
    assert errors[3]["task_id"] == str(Member.objects.get(place=3).task_id)
    with pytest.raises(KeyError):
        run.errors_of("nothing")


def test_the_result_of_each_step_can_be_read() -> None:
    run = chain(add.s(1, 2), add.map([10, 20]), fail.si()).enqueue()
    assert run.return_value_of("add") is None
    finish(run)
    names = list(run.steps)
    assert [run.return_value_of(name) for name in names] == [3, [13, 23], None]
    with pytest.raises(KeyError):
        run.return_value_of("nothing")


def test_a_handle_draws_its_workflow() -> None:
    run = finish(chain(add.s(1, 2), fail.si()).enqueue())
    assert [node.status for node in run.graph().nodes] == ["succeeded", "failed"]
    assert "add" in mermaid(run.graph())
    assert standalone_svg(run.graph()).startswith("<svg")


def test_a_handle_is_read_in_async_code() -> None:
    async_to_sync(read_in_async_code)()


async def read_in_async_code() -> None:
    run = await (add.s(1, 2) | fail.si() | echo.s()).aenqueue()
    await arun_due(errors="record")
    await run.async_wait(60)
    assert (run.status, run.progress, run.context) == ("failed", (3, 3), {})
    assert run.errors["fail"]["message"] == "it failed"
    assert run.step("echo").status == "cancelled"
    assert (await run.agraph()).steps == 3
    assert list(await run.aerrors_of("fail")) == [0]
    await run.aresolve("fail", 5)
    await arun_due()
    await run.arefresh()
    assert run.return_value == [[5], {}]


def test_a_call_that_no_longer_fits_fails_its_step_until_it_is_mended() -> None:
    run = chain(add.s(1, 2), add.s(10)).enqueue()
    rows = Task.objects.filter(step__name="add-2")
    args = rows.get().args
    rows.update(args=[1, 2, 3, 4])
    finish(run)
    assert list(statuses(run).values()) == ["succeeded", "failed"]
    rows.update(args=args)
    run.retry()
    assert finish(run).return_value == 13


def test_a_task_of_a_definition_that_is_unknown_waits_for_it() -> None:
    run = chain(add.s(1, 2), echo.s(), add.si(1, 1)).enqueue()
    Task.objects.filter(step__name="echo").update(name="tests.unknown")
    finish(run)
    assert list(statuses(run).values()) == ["succeeded", "running", "waiting"]
    assert not run.is_finished
    parked = Task.objects.get(step__name="echo")
    assert parked.parked_at is not None
    Task.objects.filter(id=parked.id).update(name=echo.name)
    run_now(parked.id)
    assert finish(run).return_value == 2


@workflow(name="tests.keyed", unique_key="only")
def keyed(wf: Builder) -> None:
    wf.step(add.s(1, 2), name="first")


def test_a_workflow_holds_its_unique_key_until_it_ends() -> None:
    run = keyed.enqueue()
    again = keyed.enqueue()
    assert (run.created, again.created, again.id) == (True, False, run.id)
    with pytest.raises(DuplicateWorkflow) as refused:
        keyed.using(on_duplicate="raise").enqueue()
    assert refused.value.result == run.id
    assert Task.objects.count() == 1
    finish(run)
    assert keyed.enqueue().created


@workflow(name="tests.inner_step")
def inner_step(wf: Builder) -> None:
    wf.step(chain(stops_its_workflow.s(), add.s(1)), name="all")


@workflow(name="tests.outer_step")
def outer_step(wf: Builder) -> None:
    wf.step(inner_step.s(), name="inner")
    wf.step(echo.s(), after="inner", name="after")


@task
def stops_its_workflow() -> int:
    """Whoever cancels the outermost workflow does so while this body runs."""
    for run in Workflow.objects.filter(parent_step_id=None, status="running"):
        get_workflow(run.id).cancel("meanwhile")
    return 1


def test_a_cancelled_workflow_cancels_its_children_and_keeps_what_succeeds_meanwhile() -> None:
    run = finish(outer_step.enqueue())
    inner = Workflow.objects.get(name="tests.inner_step")
    assert (run.status, inner.status) == ("cancelled", "cancelled")
    assert statuses(run) == {"inner": "cancelled", "after": "cancelled"}
    ends = dict(Task.objects.values_list("step__name", "status"))
    assert (ends["all.stops_its_workflow"], ends["all"]) == ("succeeded", "cancelled")
    assert not Workflow.objects.filter(finished_at=None).exists()
    assert_settled(run)


def test_a_deadline_stops_children_too() -> None:
    run = outer_step.using(deadline=timedelta(hours=1)).enqueue()
    Workflow.objects.filter(id=run.id).update(deadline_at=timezone.now())
    finish(run)
    inner = Workflow.objects.get(name="tests.inner_step")
    assert (run.status, inner.status) == ("failed", "cancelled")
    assert run.error is not None
    assert run.error["error_class"] == "taskqueue.exceptions.DeadlineExceeded"


def test_a_callback_that_fails_does_not_fail_its_workflow() -> None:
    run = finish(chain(add.s(1, 2), add.s(1)).on_success(fail.si("late")).enqueue())
    assert Task.objects.get(name=fail.name).status == "failed"
    assert run.status == "succeeded"


@override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False})
def test_callbacks_of_calls_are_given_the_result_or_the_error() -> None:
    first = add.s(1, 2).on_success(echo.s("good")).on_failure(echo.s("bad")).on_end(echo.si("end"))
    second = add.s("x").on_success(echo.s("good")).on_failure(echo.s("bad")).on_end(echo.si("end"))
    run = finish((first | second).enqueue())
    assert run.status == "failed"
    told = [
        task.return_value[0] for task in Task.objects.filter(name=echo.name, status="succeeded")
    ]
    assert [3, "good"] in told
    assert [run.error, "bad"] in told
    assert told.count(["end"]) == 2
    assert len(told) == 4


@task
def sets(number: int) -> int:
    current().workflow.update(**{f"n{number}": number, "last": number})
    return number


def test_the_context_is_told_by_the_handle() -> None:
    run = finish((sets.s(1) | sets.si(2)).enqueue())
    assert run.context == {"n1": 1, "n2": 2, "last": 2}
