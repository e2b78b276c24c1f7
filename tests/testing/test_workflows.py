"""Workflows in the tests of projects: running them, comparing graphs, asserting enqueues."""

from __future__ import annotations

import re
from unittest import mock

import pytest
from django.db import transaction
from django.test import TestCase

from taskqueue import ArgumentsDoNotBind, chain, chord, group, task, workflow
from taskqueue.models import Task, Workflow
from taskqueue.signals import workflow_enqueued
from taskqueue.testing import (
    TaskQueueTestMixin,
    aassert_workflow_enqueued,
    assert_enqueued,
    assert_graph,
    assert_workflow_enqueued,
    eager,
    run_due,
    run_next,
    travelling,
)
from taskqueue.workflows import Builder, Canvas
from tests.sample.tasks import add, echo, fail
from tests.testing.bodies import taken_back
from tests.workflows.test_running import diamond, parent


@workflow(name="testing.secretive", sensitive={"token"}, unique_key="one", deadline=3600)
def secretive(wf: Builder, day: str, token: str = "") -> None:
    first = wf.step(echo.s(day), name="first")
    wf.step(echo.s(first.error), after=first.failed, name="page")
    wf.step(echo.si(1), after=first.ended, name="always")
    wf.step(echo.si(2), name="alone")


# Running


@pytest.mark.django_db
def test_one_call_runs_a_whole_workflow() -> None:
    run = chain(add.s(0, 1), *(add.s(1) for _ in range(9))).enqueue()
    assert [each.name for each in run_due()] == [add.name] * 10
    run.refresh()
    assert (run.status, run.return_value) == ("succeeded", 10)
    child = parent.enqueue(0)
    run_due()
    child.refresh()
    assert child.status == "succeeded"


@pytest.mark.django_db
def test_each_attempt_moves_its_workflow_on() -> None:
    run = (add.s(1, 2) | add.s(3)).enqueue()
    assert run_next() is not None
    assert not Task.objects.filter(status="blocked").exists()
    assert run_next() is not None
    run.refresh()
    assert run.status == "succeeded"


@pytest.mark.django_db
def test_a_deadline_passes_when_the_clock_moves() -> None:
    run = secretive.enqueue("today")
    with travelling(3601):
        run_due()
    run.refresh()
    assert run.status == "failed"
    assert run.error is not None
    assert run.error["error_class"].endswith("DeadlineExceeded")


# Eager mode


@pytest.mark.django_db
def test_eager_mode_runs_a_workflow_before_its_enqueue_returns() -> None:
    with eager():
        run = chord([add.s(n, 1) for n in range(3)], echo.s()).enqueue()
        assert (run.status, run.return_value) == ("succeeded", [[[1, 2, 3]], {}])
        later = (add.s(1, 2) | add.using(run_after=3600).s(1)).enqueue()
        assert later.status == "running"
        with pytest.raises(ValueError, match="always"), eager(errors="raise"):
            (fail.si("always") | echo.s()).enqueue()
    waiting = (add.s(1, 2) | add.s(1)).enqueue()
    assert waiting.status == "running"


@task
def enqueues_a_workflow() -> str:
    return str((add.s(1, 2) | add.s(3)).enqueue().id)


@pytest.mark.django_db
def test_in_eager_mode_a_workflow_of_a_body_runs_behind_it() -> None:
    with eager():
        result = enqueues_a_workflow.enqueue()
    run = Workflow.objects.get(id=result.return_value)
    assert run.status == "succeeded"


@pytest.mark.django_db(transaction=True)
def test_eager_mode_at_commit_waits_for_the_commit() -> None:
    with eager(when="commit"):
        with transaction.atomic():
            run = (add.s(1, 2) | add.s(3)).enqueue()
            assert run.status == "running"
        assert run.status == "succeeded"
        with taken_back():
            (add.s(1, 2) | add.s(3)).enqueue()
    assert Workflow.objects.count() == 1


@pytest.mark.django_db
def test_the_signal_of_a_workflow_is_sent_once_for_each_that_is_new() -> None:
    seen: list[object] = []

    def note(sender: object, run: object, **named: object) -> None:
        seen.append((sender, run))

    workflow_enqueued.connect(note)
    try:
        run = secretive.enqueue("today")
        assert not secretive.enqueue("today").created
        ad_hoc = (add.s(1, 2) | add.s(3)).enqueue()
    finally:
        workflow_enqueued.disconnect(note)
    assert seen == [(secretive, run), (Canvas, ad_hoc)]


# Graphs


@pytest.mark.parametrize(
    "expected",
    [
        "first -failed-> page\nfirst -ended-> always\n\n  alone  ",
        {"first": [], "page": ["first.failed"], "always": ["first.ended"], "alone": []},
    ],
)
def test_a_graph_is_compared_with_text_or_a_dict(expected: str | dict[str, list[str]]) -> None:
    assert_graph(secretive.s("today"), expected)
    assert_graph(secretive.build("today"), expected)


def test_several_steps_stand_on_one_line() -> None:
    assert_graph(diamond.s(1), "first -> left -> last\nfirst -> right -> last")
    assert_graph(chain(add.s(1, 2), echo.s()), "add -> echo")


@pytest.mark.django_db
def test_the_graph_of_an_enqueued_workflow_is_read_from_its_rows() -> None:
    run = diamond.enqueue(1)
    assert_graph(run, "first -> left -> last\nfirst -> right -> last")
    with pytest.raises(AssertionError):
        assert_graph(run, "first -> left -> last")


def test_a_difference_is_named_and_the_graph_drawn() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_graph(diamond.s(1), "first -> left -> end\nfirst -failed-> right")
    assert str(raised.value).splitlines() == [
        "The graph differs.",
        "Missing steps: end.",
        "Unexpected steps: last.",
        "Missing dependencies: first -failed-> right, left -> end.",
        "Unexpected dependencies: first -> right, left -> last, right -> last.",
        "It is:",
        "  first -> left",
        "  first -> right",
        "  left -> last",
        "  right -> last",
    ]


def test_a_drawing_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(TypeError, match="'left' must follow a list of steps, not 'first'"):
        assert_graph(diamond.s(1), {"first": [], "left": "first"})


# Enqueues


@pytest.mark.django_db
def test_enqueued_workflows_are_counted_by_name_and_arguments() -> None:
    run = diamond.enqueue(1)
    diamond.enqueue(start=2)
    parent.enqueue(5)
    run_due()
    [found] = assert_workflow_enqueued(diamond, args=[1], status="succeeded")
    assert found.id == run.id
    assert_workflow_enqueued(diamond, kwargs={"start": 1})
    assert_workflow_enqueued("tests.diamond", times=2)
    assert_workflow_enqueued(times=3)
    assert_workflow_enqueued(diamond, args=[mock.ANY], times=2)
    assert_workflow_enqueued(secretive, times=0)
    assert_enqueued(echo, times=4)
    group(add.s(1, 1), add.s(2, 2)).enqueue()
    assert_workflow_enqueued(status="running")


@pytest.mark.django_db
def test_a_failure_lists_the_workflows_without_secrets() -> None:
    with pytest.raises(AssertionError, match=re.escape("No workflow was enqueued.")):
        assert_workflow_enqueued(secretive)
    secretive.enqueue("today", token="hunter2-of-mine")
    with pytest.raises(AssertionError) as raised:
        assert_workflow_enqueued(secretive, args=["tomorrow"], kwargs={"token": "hunter3-of-mine"})
    assert str(raised.value) == (
        "Expected 1 of testing.secretive('tomorrow', token='[redacted]'); found 0. Enqueued:\n"
        "  testing.secretive('today', token='[redacted]') with unique_key='one': running"
    )
    with pytest.raises(AssertionError, match=r"Expected none of .* found 1"):
        assert_workflow_enqueued(secretive, times=0)


@pytest.mark.django_db
def test_expectations_that_no_workflow_can_meet_are_refused() -> None:
    with pytest.raises(ArgumentsDoNotBind):
        assert_workflow_enqueued(diamond, args=[1, 2, 3])
    with pytest.raises(ValueError, match="status must be"):
        assert_workflow_enqueued(diamond, status="blocked")
    with pytest.raises(TypeError, match="There is no option 'priority'"):
        assert_workflow_enqueued(diamond, priority=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="times must be"):
        assert_workflow_enqueued(diamond, times=-1)


class Methods(TaskQueueTestMixin, TestCase):
    def test_workflows_are_asserted(self) -> None:
        self.assertGraph(add.s(1, 2) | echo.s(), "add -> echo")
        diamond.enqueue(1)
        self.assertWorkflowEnqueued(diamond, args=[1])

    async def test_in_async_code(self) -> None:
        await aassert_workflow_enqueued(times=0)
