"""Limits of groups of unlike calls: how many run at once, and how many may fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from taskqueue import chain, chord, fan_out, group, task, workflow
from taskqueue.control import retry
from taskqueue.declarations.workflows.graph_json import graph_from_json, graph_to_json
from taskqueue.engine.making_specs import spec_of
from taskqueue.engine.workflows import fan_outs
from taskqueue.engine.workflows.by_hand import delete_workflow
from taskqueue.engine.workflows.reconciling import reconcile
from taskqueue.models import Lease, Member, Step, StepCalls, Task, Workflow
from taskqueue.monitoring.read_models.step import shown_steps, steps_of
from taskqueue.monitoring.read_models.workflow import children_of
from taskqueue.monitoring.why.workflows import why_workflow
from taskqueue.results.workflow_enqueueing import enqueue_graph
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import run_next
from taskqueue.workflows import Builder
from tests.sample.tasks import add, echo
from tests.workflows.recount import assert_counts
from tests.workflows.steps_of import finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)

# Numbers that fail, as the tests set them.
BAD: set[int] = set()


@pytest.fixture(autouse=True)
def bad() -> Iterator[set[int]]:
    BAD.clear()
    yield BAD
    BAD.clear()


@task
def picky(number: int) -> int:
    if number in BAD:
        raise ValueError(f"{number} is bad")
    return number


first = picky.using(priority=9)


@task(priority=3)
def doubled(number: int) -> int:
    return 2 * number


@task(expires_after=3600)
def brief(number: int) -> int:
    return picky.call(number)


@task
def several(tolerate: int) -> Any:
    calls = [picky.s(1), doubled.s(2), picky.s(3) | doubled.s(), doubled.s(4)]
    return fan_out(calls, concurrency=2, tolerate=tolerate)


@task
def folder(*numbers: int) -> dict[str, list[int]]:
    return {"files": list(numbers)}


@task
def pages(numbers: Any) -> list[Any]:
    return [len(numbers), numbers[0], list(numbers[1:])]


@workflow(name="tests.unlike_child")
def child(wf: Builder, number: int) -> None:
    wf.step(picky.s(number), name="inner")


@workflow(name="tests.unlike_parent")
def parent(wf: Builder, start: int, tolerate: int = 0) -> None:
    found = wf.step(folder.s(start, 2, 3), name="folder")
    parts = group(
        picky.s(found["files"][0]) | add.s(100),
        doubled.s(found["files"].length()) | echo.s(start),
        chain(doubled.si(1), echo.s(found["files"], child=found["files"][1])),
        child.s(found["files"][2]),
        picky.s(found["files"][1]).on_failure(echo.s()),
    )
    all = wf.step(parts, concurrency=2, tolerate=tolerate, name="parts")
    wf.step(echo.s(all), name="after")


@workflow(name="tests.unlike_fast", fail_fast=True)
def fast(wf: Builder) -> None:
    calls = [first.s(1), *[doubled.s(2) | doubled.s(), doubled.s(3)] * 30]
    wf.step(group(calls), concurrency=40)


def assert_ended(run: WorkflowRun) -> None:
    """Assert that nothing of a workflow that has ended is left open, and that its counts hold."""
    assert run.is_finished
    assert_counts()
    family = [run.id, *Workflow.objects.exclude(parent_step_id=None).values_list("id", flat=True)]
    steps = Step.objects.filter(workflow_id__in=family)
    assert not steps.filter(finished_at=None).exists()
    assert not steps.filter(is_due=True).exists()
    assert not Workflow.objects.filter(finished_at=None).exists()
    assert not Task.objects.filter(step__in=steps, finished_at=None).exists()


def running_members(run: WorkflowRun) -> int:
    """Return how many members of its groups run or wait for a worker."""
    steps = Step.objects.filter(workflow_id=run.id, kind="map")
    tasks = Task.objects.filter(step__in=steps, finished_at=None).exclude(status="blocked")
    children = Workflow.objects.filter(parent_step_id__in=steps.values("id"), finished_at=None)
    return tasks.count() + children.filter(status="running").count()


def most_at_once(run: WorkflowRun) -> int:
    """Run the workflow task by task; return how many members ran at once at most."""
    most = running_members(run)
    while run_next(errors="record") is not None:
        most = max(most, running_members(run))
    finish(run)
    return most


def test_results_of_unlike_calls_stand_in_order() -> None:
    calls = [picky.s(1), doubled.s(2), picky.s(3) | doubled.s(), child.s(4), echo.s(5)]
    run = finish(chord(group(calls, concurrency=2), echo.s()).enqueue())
    assert run.status == "succeeded"
    assert run.return_value == [[[1, 4, 6, 4, [[5], {}]]], {}]
    assert_ended(run)


def test_no_more_members_run_at_once_than_may() -> None:
    calls = [
        picky.s(1),
        doubled.s(2),
        picky.s(3) | doubled.s(),
        child.s(4),
        group(add.s(1), add.s(2)),
    ]
    run = group(calls * 3, concurrency=2).enqueue()
    assert most_at_once(run) == 2
    assert run.return_value == [1, 4, 6, 4, [2, 3]] * 3
    assert run.progress == (15, 15)
    assert_ended(run)


def test_tolerated_failures_leave_none_in_their_places() -> None:
    BAD.update((1, 4))
    calls = [picky.s(1), doubled.s(2), picky.s(3) | doubled.s(), child.s(4), picky.s(1) | add.s(1)]
    run = finish(chord(group(calls, tolerate=3), echo.s()).enqueue())
    assert run.status == "succeeded"
    assert run.return_value == [[[None, 4, 6, None, None]], {}]
    assert (run.step("group").ended, run.step("group").failures) == (5, 3)
    assert_ended(run)


def test_a_share_of_unlike_calls_may_fail() -> None:
    BAD.add(1)
    calls = [picky.s(1), doubled.s(2), picky.s(1) | doubled.s(), doubled.s(3)]
    assert finish(group(calls, tolerate=0.5).enqueue()).return_value == [None, 4, None, 6]
    assert finish(group(calls, tolerate=0.49).enqueue()).status == "failed"


@pytest.mark.parametrize("bad_one", [picky.s(7), picky.s(7) | doubled.s(), child.s(7)])
def test_more_failures_than_may_be_drop_what_was_not_sent(bad_one: Any) -> None:
    BAD.add(7)
    calls = [doubled.s(1), bad_one, doubled.s(2), picky.s(3) | doubled.s()]
    run = finish(chord(group(calls, concurrency=1), echo.s()).enqueue())
    assert run.status == "failed"
    assert statuses(run) == {"group": "failed", "echo": "cancelled"}
    assert (run.step("group").members, run.step("group").failures) == (2, 1)
    error = run.errors["group"]
    assert (error["error_class"], error["message"]) == ("builtins.ValueError", "7 is bad")
    assert error["place"] == 1
    assert_ended(run)


def test_parts_read_the_results_of_steps_outside() -> None:
    run = finish(parent.enqueue(1))
    assert run.status == "succeeded"
    assert run.return_value == [
        [[101, [[6, 1], {}], [[2, [1, 2, 3]], {"child": 2}], 3, 2]],
        {},
    ]
    assert list(run.steps) == ["folder", "parts", "after"]
    assert_ended(run)


def test_the_result_before_comes_first_in_each_part() -> None:
    calls = [add.s(1), add.s(2) | doubled.s(), add.si(1, 1), group(add.s(3), echo.s())]
    run = finish((picky.s(10) | group(calls, concurrency=1) | echo.s()).enqueue())
    assert run.return_value == [[[11, 24, 2, [13, [[10], {}]]]], {}]
    assert_ended(run)


def test_callbacks_of_a_part_run_within_it() -> None:
    BAD.add(2)
    run = finish(parent.enqueue(1, tolerate=1))
    assert run.status == "succeeded"
    assert run.return_value[0][0][4] is None
    (told,) = Task.objects.filter(step__workflow__name="picky", name=echo.name)
    assert told.return_value[0][0]["message"] == "2 is bad"
    assert_ended(run)


def test_limits_nest() -> None:
    inner = group([picky.s(1), doubled.s(2) | add.s(1)], concurrency=1, tolerate=1)
    outer = group([inner | echo.s(), inner, child.s(1)], concurrency=2, tolerate=1)
    BAD.add(1)
    run = finish(outer.enqueue())
    assert run.return_value == [[[[None, 5]], {}], [None, 5], None]
    assert_ended(run)


def test_lists_of_unlike_results_are_read_in_pages() -> None:
    BAD.add(1)

    @workflow(name="tests.unlike_pages")
    def paged(wf: Builder) -> None:
        parts = wf.step(group(doubled.s(5), picky.s(1), picky.s(2) | doubled.s()), tolerate=1)
        wf.step(pages.s(parts.lazy()))

    assert finish(paged.enqueue()).return_value == [3, 10, [None, 4]]


def test_an_empty_group_with_limits_succeeds() -> None:
    run = finish((group([], concurrency=1) | echo.s()).enqueue())
    assert run.return_value == [[[]], {}]


def test_fail_fast_stops_the_other_members() -> None:
    BAD.add(1)
    run = finish(fast.enqueue())
    assert run.status == "failed"
    assert run.error is not None
    assert run.error["message"] == "1 is bad"
    # The next one was claimed as the first was recorded.
    assert Lease.objects.count() <= 2
    assert_ended(run)


def test_a_cancelled_workflow_stops_its_unlike_members() -> None:
    calls = [picky.s(1), doubled.s(2) | doubled.s(), child.s(3), doubled.s(4)]
    run = group(calls, concurrency=3).enqueue()
    run_next()
    run.cancel("not needed")
    finish(run)
    assert run.status == "cancelled"
    assert set(Workflow.objects.values_list("status", flat=True)) == {"cancelled"}
    assert_ended(run)
    run.retry()
    finish(run)
    assert run.return_value == [1, 8, 3, 8]
    assert_ended(run)


def test_a_paused_group_sends_nothing_more() -> None:
    run = group([picky.s(1), doubled.s(2), picky.s(3) | doubled.s()], concurrency=1).enqueue()
    run.pause()
    finish(run)
    assert run.progress == (1, 3)
    run.resume()
    assert finish(run).return_value == [1, 4, 6]
    assert_ended(run)


def test_a_retry_runs_members_in_place_and_keeps_to_the_limit() -> None:
    BAD.update((1, 4))
    calls = [brief.s(1), doubled.s(2), doubled.s(3) | picky.si(1), child.s(4), picky.s(4)]
    run = finish(group(calls, concurrency=2, tolerate=3).enqueue())
    assert run.status == "failed"
    members = set(Member.objects.filter(step__workflow_id=run.id).values_list("task_id", flat=True))
    children = set(Workflow.objects.exclude(id=run.id).values_list("id", flat=True))
    BAD.clear()

    run.retry()
    assert running_members(run) == 2
    again = Task.objects.get(name=brief.name)
    assert again.expires_at is not None
    assert most_at_once(run) == 2

    assert run.return_value == [1, 4, 1, 4, 4]
    assert children == set(Workflow.objects.exclude(id=run.id).values_list("id", flat=True))
    now = set(Member.objects.filter(step__workflow_id=run.id).values_list("task_id", flat=True))
    assert now == members
    attempts = {task.name.rpartition(".")[2]: task.attempt for task in Task.objects.order_by("id")}
    assert attempts["brief"] == 2
    # What had succeeded stays, within the parts too.
    assert Lease.objects.filter(task__name=doubled.name).count() == 2
    assert_ended(run)


def test_a_retry_that_is_cancelled_ends_what_it_had_not_sent() -> None:
    BAD.update((1, 2, 3))
    calls = [picky.s(1), picky.s(2) | doubled.s(), child.s(3), doubled.s(4)]
    run = finish(group(calls, concurrency=1, tolerate=2).enqueue())
    assert run.status == "failed"
    run.retry()
    run.cancel()
    finish(run)
    assert run.status == "cancelled"
    assert_ended(run)
    BAD.clear()
    run.retry()
    assert finish(run).return_value == [1, 4, 3, 8]
    assert_ended(run)


def test_members_that_fail_again_fail_the_group_again() -> None:
    BAD.update((1, 2, 3))
    calls = [picky.s(1), picky.s(2) | doubled.s(), child.s(3), doubled.s(4)]
    run = finish(group(calls, concurrency=1, tolerate=1).enqueue())
    for _ in range(3):
        run.retry()
        finish(run)
        assert run.status == "failed"
        assert_ended(run)


def test_a_group_that_runs_anew_sends_its_members_again() -> None:
    run = finish(parent.enqueue(1))
    before = run.return_value
    run.retry(from_step="folder")
    finish(run)
    assert run.status == "succeeded"
    assert run.return_value == before
    assert (run.step("parts").members, run.step("parts").ended) == (5, 5)
    assert_ended(run)


def test_one_member_is_retried_by_hand_while_the_others_run() -> None:
    BAD.add(1)
    run = group([first.s(1), doubled.s(2), picky.s(3) | doubled.s()], tolerate=1).enqueue()
    run_next(errors="record")
    BAD.clear()
    failed = Task.objects.get(status="failed")
    retry(failed.id)
    assert finish(run).return_value == [1, 4, 6]
    assert_ended(run)


@pytest.mark.parametrize("few", [100, 2])
def test_a_body_returns_unlike_calls_with_limits(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_outs, "FEW", few)
    BAD.add(1)
    run = several.s(1).enqueue()
    assert most_at_once(run) == 2
    assert run.return_value == [None, 4, 6, 8]
    assert_ended(run)
    run = finish(several.s(0).enqueue())
    assert run.errors["several"]["message"] == "1 is bad"
    BAD.clear()
    run.retry()
    assert finish(run).return_value == [1, 4, 6, 8]
    assert_ended(run)


def test_a_schedule_keeps_groups_with_limits() -> None:
    graph = parent.build(1)
    stored = json.loads(json.dumps(graph_to_json(graph, lambda own: spec_of(own).as_json())))
    run = enqueue_graph(graph_from_json(stored))
    assert finish(run).return_value == finish(parent.enqueue(1)).return_value


def test_a_deadline_ends_the_parts_too() -> None:
    slow = parent.using(deadline=timedelta(seconds=0))
    run = finish(slow.enqueue(1))
    assert run.status == "failed"
    assert_ended(run)


def test_unlike_members_are_pruned_with_their_workflow() -> None:
    run = finish(parent.enqueue(1))
    delete_workflow(run.id)
    assert not Workflow.objects.exists()
    for model in (Step, Task, Member):
        assert not model.objects.exists()
    assert not StepCalls.objects.exists()


def test_a_recount_counts_unlike_members() -> None:
    run = (
        group([picky.s(1), doubled.s(2) | doubled.s(), child.s(3)])
        .limited(concurrency=2, tolerate=None)
        .enqueue()
    )
    run_next()
    Workflow.objects.update(moved_at=timezone.now() - timedelta(hours=1))
    Workflow.objects.update(recount_at=timezone.now() - timedelta(hours=1))
    Step.objects.update(counted_at=None)
    before = list(Step.objects.order_by("id").values_list("ended", "failures", "is_due"))
    reconcile(connection)
    assert list(Step.objects.order_by("id").values_list("ended", "failures", "is_due")) == before
    assert finish(run).return_value == [1, 8, 3]


def test_people_see_which_child_of_a_group_failed() -> None:
    BAD.add(3)
    run = finish(group([doubled.s(1), picky.s(3) | doubled.s()], concurrency=2).enqueue())
    rows = list(steps_of(run.id))
    (shown,) = shown_steps(rows, get_user_model()(is_superuser=True))
    assert shown.error is not None
    assert shown.error.message == "3 is bad"
    (told,) = children_of(run.id)
    assert (told.step, told.status) == ("group", "failed")


def test_why_names_the_child_that_runs() -> None:
    run = group([picky.s(3) | doubled.s(), doubled.s(1)], concurrency=1).enqueue()
    row = Workflow.objects.get(id=run.id)
    codes = {reason.code for reason in why_workflow(row)}
    assert {"child_runs", "step_limited"} <= codes
