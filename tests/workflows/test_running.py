"""Workflows that a played worker runs: chains, groups, chords, children, joins."""

from __future__ import annotations

import pytest
from django.test import override_settings

from taskqueue import chain, chord, group, workflow
from taskqueue.control import cancel
from taskqueue.models import Task
from taskqueue.workflows import Builder
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import assert_settled, finish, statuses

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="tests.diamond")
def diamond(wf: Builder, start: int) -> None:
    first = wf.step(add.s(start, 1), name="first")
    left = wf.step(add.s(first, 10), name="left")
    right = wf.step(add.s(first, 100), name="right")
    wf.step(echo.s(left, right), name="last")


@workflow(name="tests.parent")
def parent(wf: Builder, start: int) -> None:
    before = wf.step(add.s(start, 1), name="before")
    inner = wf.step(diamond.s(before), name="inner")
    wf.step(echo.s(inner), name="after")


def test_a_chain_hands_each_result_to_the_next_call() -> None:
    run = chain(add.s(1, 2), add.s(10), add.s(100)).enqueue()
    assert Task.objects.filter(status="blocked").count() == 2
    finish(run)
    assert run.status == "succeeded"
    assert run.return_value == 113
    assert_settled(run)


def test_a_group_gives_results_in_order() -> None:
    run = finish(group(add.s(n, n) for n in range(7)).enqueue())
    assert run.status == "succeeded"
    assert run.return_value == [0, 2, 4, 6, 8, 10, 12]
    assert_settled(run)


def test_a_chord_calls_back_once_with_all_results() -> None:
    run = finish(chord([add.s(n, 1) for n in range(5)], echo.s()).enqueue())
    assert run.return_value == [[[1, 2, 3, 4, 5]], {}]
    assert Task.objects.filter(name=echo.name).count() == 1
    assert_settled(run)


def test_a_group_of_unlike_calls_is_joined() -> None:
    run = finish(chord([add.s(1, 1), echo.s(5)], echo.s()).enqueue())
    assert run.return_value == [[[2, [[5], {}]]], {}]
    assert_settled(run)


def test_an_empty_map_succeeds_with_an_empty_list() -> None:
    run = finish((add.map([]) | echo.s()).enqueue())
    assert run.status == "succeeded"
    assert run.return_value == [[[]], {}]
    assert_settled(run)


def test_a_dag_joins_both_branches() -> None:
    run = finish(diamond.enqueue(0))
    assert run.return_value == [[11, 101], {}]
    assert_settled(run)


def test_a_child_workflow_is_a_step() -> None:
    run = finish(parent.enqueue(0))
    assert run.return_value == [[[[12, 102], {}]], {}]
    assert_settled(run)


def test_a_failure_cancels_dependent_steps_and_other_branches_finish() -> None:
    @workflow(name="tests.failing")
    def failing(wf: Builder) -> None:
        bad = wf.step(fail.si(), name="bad")
        wf.step(echo.s(bad), name="needs-it")
        wf.step(add.s(1, 1), name="other")
        wf.step(echo.s(bad.error), after=bad.failed, name="handler")
        wf.step(echo.si(1), after=bad.ended, name="always")

    run = finish(failing.enqueue())
    assert statuses(run) == {
        "bad": "failed",
        "needs-it": "cancelled",
        "other": "succeeded",
        "handler": "succeeded",
        "always": "succeeded",
    }
    assert run.status == "failed"
    assert run.error is not None
    assert run.error["error_class"] == "builtins.ValueError"
    assert_settled(run)


def test_a_task_that_is_cancelled_before_its_release_fails_its_step() -> None:
    run = chain(add.s(1, 2), add.s(10), echo.s()).enqueue()
    second = Task.objects.filter(status="blocked").order_by("id").first()
    assert second is not None
    cancel(second.id)
    finish(run)
    assert list(statuses(run).values()) == ["succeeded", "failed", "cancelled"]
    assert run.status == "failed"
    assert_settled(run)


def test_a_cancelled_workflow_releases_nothing_more() -> None:
    run = chain(add.s(1, 2), add.s(10)).enqueue()
    run.cancel("not needed")
    finish(run)
    assert run.status == "cancelled"
    assert set(statuses(run).values()) == {"cancelled"}
    assert_settled(run)


def test_a_paused_workflow_goes_on_when_it_is_resumed() -> None:
    run = chain(add.s(1, 2), add.s(10)).enqueue()
    run.pause("lunch")
    finish(run)
    assert list(statuses(run).values()) == ["succeeded", "waiting"]
    run.resume()
    finish(run)
    assert run.return_value == 13
    assert_settled(run)


@override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False})
def test_a_map_tolerates_failures_and_sends_as_many_as_it_may() -> None:
    @workflow(name="tests.tolerant")
    def tolerant(wf: Builder) -> None:
        pairs = [(number, "x" if number % 2 else 0) for number in range(6)]
        parts = wf.step(add.starmap(pairs), concurrency=2, tolerate=3, name="parts")
        wf.step(echo.s(parts), name="all")

    run = tolerant.enqueue()
    assert Task.objects.filter(name=add.name).count() == 2
    finish(run)
    assert run.return_value == [[[0, None, 2, None, 4, None]], {}]
    assert_settled(run)


@override_settings(TASKQUEUE={"CHECK_ARGUMENTS": False})
def test_fail_fast_stops_the_map_of_which_too_many_failed() -> None:
    @workflow(name="tests.fast_map", fail_fast=True)
    def fast(wf: Builder) -> None:
        wf.step(add.starmap([("x", 1), *[(n, 1) for n in range(9)]]), name="parts")
        wf.step(echo.s(), name="other")

    run = finish(fast.enqueue())
    assert (run.status, run.error and run.error["error_class"]) == ("failed", "builtins.TypeError")
    assert statuses(run)["parts"] == "failed"
    # The next one was claimed as the first was recorded.
    assert Task.objects.filter(status="succeeded").count() <= 1
    assert_settled(run)


def test_fail_fast_stops_other_branches() -> None:
    @workflow(name="tests.fast_steps", fail_fast=True)
    def fast(wf: Builder) -> None:
        wf.step(fail.using(priority=9).s(), name="bad")
        wf.step(chain(*[add.si(1, 1)] * 5), name="other")

    run = finish(fast.enqueue())
    assert (run.status, run.error and run.error["error_class"]) == ("failed", "builtins.ValueError")
    assert (statuses(run)["bad"], statuses(run)["other"]) == ("failed", "cancelled")
    assert_settled(run)
