"""What a blocked task waits for, and why a workflow does not move on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from taskqueue import chord, workflow
from taskqueue.models import Step, StepEnd, Task, Workflow
from taskqueue.monitoring.why import Reason, why, why_workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import run_next
from taskqueue.workflows import Builder
from tests.management.test_taskqueue import run as command
from tests.management.test_taskqueue import run_json
from tests.monitoring.rows import ago, make_worker
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish
from tests.workflows.test_reconciling import end_without_folding
from tests.workflows.test_running import diamond, parent

pytestmark = pytest.mark.django_db


def of_run(run: WorkflowRun) -> dict[str, Reason]:
    found = why_workflow(Workflow.objects.get(id=run.id))
    assert found
    assert all(reason.sentence for reason in found)
    return {reason.code: reason for reason in found}


def of_step(run: WorkflowRun, name: str) -> dict[str, Reason]:
    found = why(Task.objects.get(step__workflow=run.id, step__name=name))
    assert all(reason.sentence for reason in found)
    return {reason.code: reason for reason in found}


def test_a_blocked_task_names_the_steps_and_the_oldest_unfinished_task() -> None:
    run = diamond.enqueue(1)
    first = Task.objects.get(step__workflow=run.id, step__name="first")
    found = of_step(run, "last")
    assert list(found) == ["steps_wait", "member_runs"]
    assert found["steps_wait"].subject == "left, right"
    reason = found["member_runs"]
    assert reason.subject == "first", "No step that it waits for runs, but this one does."
    assert reason.details == {"task": str(first.id), "status": "ready", "ended": 0, "members": 1}
    run_next()
    assert of_step(run, "last")["member_runs"].subject == "left"


def test_the_oldest_task_of_a_map_is_the_first_that_has_not_ended() -> None:
    run = chord([add.s(n, 1) for n in range(4)], echo.s()).enqueue()
    run_next()
    run_next()
    third = Task.objects.get(name=add.name, place=2)
    for found in (of_run(run), of_step(run, [*run.steps][-1])):
        assert found["member_runs"].details["task"] == str(third.id)
        assert found["member_runs"].details["members"] == 4


def test_a_step_held_back_by_its_concurrency_says_so() -> None:
    @workflow(name="tests.limited")
    def limited(wf: Builder) -> None:
        wf.step(add.map([1, 2, 3, 4, 5]), name="parts", concurrency=2)

    found = of_run(limited.enqueue())
    assert found["step_limited"].details == {"most": 2, "unsent": 3}
    assert "at most 2 tasks at once: 3 more wait" in found["step_limited"].sentence


def test_a_child_workflow_is_named() -> None:
    run = parent.enqueue(0)
    run_next()
    [child] = Workflow.objects.exclude(id=run.id)
    assert of_run(run)["child_runs"].details == {"workflow": str(child.id), "status": "running"}
    assert of_step(run, "after")["child_runs"].subject == "inner"


def test_a_paused_stopping_or_troubled_workflow_says_so() -> None:
    run = (add.s(1, 2) | add.s(10)).enqueue()
    run.pause("lunch", by="ann")
    for found in (of_run(run), of_step(run, [*run.steps][-1])):
        assert found["workflow_paused"].details == {"by": "ann", "reason": "lunch"}
        assert found["workflow_paused"].sentence.endswith(", by ann: lunch")
    run.pause("a longer lunch")
    assert of_run(run)["workflow_paused"].sentence.endswith("UTC: a longer lunch")
    run.resume()
    moment = ago(timedelta(minutes=1))
    rows = Workflow.objects.filter(id=run.id)
    rows.update(status="stopping", stop_requested_at=moment, stop_requested_by="ann",
                stop_reason="enough", trouble="odd", deadline_at=moment)  # fmt: skip
    found = of_run(run)
    assert found["workflow_stopping"].sentence.startswith("ann asked the workflow to stop at ")
    assert found["workflow_stopping"].sentence.endswith(": enough")
    assert found["workflow_trouble"].sentence == "The workflow could not be moved on: odd"
    assert found["workflow_overdue"].moment == moment


def test_ends_that_nobody_has_counted_wait_for_a_worker() -> None:
    run = (add.s(1, 2) | add.s(10)).enqueue()
    end_without_folding()
    assert StepEnd.objects.count() == 1
    found = of_run(run)
    assert found["ends_waiting"].details == {"number": 1}
    assert "no_workers" in found
    make_worker()
    assert "no_workers" not in of_run(run)


def test_a_workflow_in_which_nothing_runs_is_moved_on_by_a_worker() -> None:
    run = (add.s(1, 2) | add.s(10)).enqueue()
    Step.objects.filter(workflow=run.id).update(status="waiting")
    assert set(of_run(run)) == {"no_workers"}
    make_worker()
    assert set(of_run(run)) == {"advancing"}


def test_an_ended_workflow_says_how() -> None:
    run = finish((add.s(1, 2) | add.s(10)).enqueue())
    assert set(of_run(run)) == {"workflow_succeeded"}
    run = finish((fail.si() | add.s(10)).enqueue())
    [reason] = of_run(run).values()
    assert (reason.code, reason.subject) == ("workflow_failed", next(iter(run.steps)))
    assert " with builtins.ValueError: " in reason.sentence
    run = (add.s(1, 2) | add.s(10)).enqueue()
    run.cancel("not needed", by="ann")
    [reason] = of_run(finish(run)).values()
    assert reason.sentence.endswith(" by ann: not needed")


def test_a_parked_task_is_reported() -> None:
    run = (add.s(1, 2) | add.s(10)).enqueue()
    Task.objects.filter(status="ready").update(parked_at=ago(timedelta(minutes=1)))
    assert "no worker that claimed it knows it" in of_run(run)["member_parked"].sentence


def test_a_blocked_task_without_its_step_has_a_reason() -> None:
    (add.s(1, 2) | add.s(10)).enqueue()
    [task] = Task.objects.filter(status="blocked")
    Task.objects.filter(id=task.id).update(step=None)
    task.refresh_from_db()
    assert [reason.code for reason in why(task)] == ["blocked"]


def test_the_command_why_takes_the_id_of_a_workflow() -> None:
    run = diamond.enqueue(1)
    said = command("why", str(run.id))
    assert said.startswith(f"{run.id}  tests.diamond  running  workflow\n  The step first is ")
    reasons = run_json("why", str(run.id))["reasons"]
    assert [reason["code"] for reason in reasons] == ["member_runs"]
