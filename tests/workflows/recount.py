"""What the totals of workflows and of their steps should be, by a count of their rows."""

from __future__ import annotations

from django.db import connection
from django.db.transaction import atomic

from taskqueue.core.workflow_states import FINAL_STEPS, FINAL_WORKFLOWS, StepKind, StepStatus
from taskqueue.engine.workflows.counting import counted
from taskqueue.engine.workflows.requests import child_graph
from taskqueue.models import Member, Step, StepCalls, StepEnd, Task, Workflow


def assert_counts() -> None:
    """Assert that all totals equal what is there, of workflows that run or have ended."""
    with atomic():  # PostgreSQL counts by a cursor.
        _assert_counts()


def _assert_counts() -> None:
    for workflow in Workflow.objects.exclude(parent_step_id=0):
        steps = list(Step.objects.filter(workflow=workflow).order_by("id"))
        is_open = [step for step in steps if step.status not in FINAL_STEPS]
        told = (workflow.open_steps, workflow.total_steps, workflow.members)
        members = sum(members_of(step) for step in steps)
        assert told == (len(is_open), len(steps), members), (workflow, workflow.status, steps)
        for step in steps:
            assert_step(workflow, step)


def members_of(step: Step) -> int:
    """Return with how many members a workflow counts a step."""
    if step.kind == StepKind.WORKFLOW:
        return child_graph(step.request).members if step.members else 0
    if step.kind != StepKind.MAP:
        return 0 if step.kind == StepKind.JOIN else 1
    kept = list(StepCalls.objects.filter(step=step, lease_id=0).order_by("first_place"))
    # A map that did not succeed is retried with those too that were not sent.
    width = max(step.released, kept[-1].first_place + len(kept[-1].calls) if kept else 0)
    inner = 0
    if step.parent_step_id is None:  # What calls that a body returns bring is not known so soon.
        graphs = [call[0] for row in kept for call in row.calls if len(call) == 1]
        inner = sum(child_graph({"graph": graph}).members - 1 for graph in graphs)
    return width + inner


def assert_step(workflow: Workflow, step: Step) -> None:
    """Assert that the counts of a step hold, where all of its tasks are as its row says."""
    is_final = step.status in FINAL_STEPS
    if step.kind == StepKind.JOIN or (step.reopen_from is not None and not is_final):
        return
    what = (workflow, workflow.status, step, step.status)
    children = Workflow.objects.filter(parent_step_id=step.id)
    if step.status == StepStatus.RUNNING or (is_final and step.kind != StepKind.WORKFLOW):
        found = counted(connection, {step.id: step.members or 0}, [workflow.id])[step.id]
        assert (step.ended, step.failures) == found, (what, step.ended, step.failures, found)
    if step.kind == StepKind.MAP:
        sent = Member.objects.filter(step=step).count()
        sent += children.filter(parent_place__isnull=False).count()
        assert step.released == sent, (what, step.released, sent)
    blocked = Task.objects.filter(step=step, status="blocked").count()
    if step.status == StepStatus.RUNNING:
        waiting = children.filter(finished_at=None, status__in=sorted(FINAL_WORKFLOWS)).count()
        assert step.held == blocked + waiting, (what, step.held, blocked, waiting)
    elif step.status in FINAL_STEPS:
        assert blocked == 0, (what, blocked)
    if step.status == StepStatus.SUCCEEDED:
        assert step.held == 0
        assert step.ended == (step.members or 0) or "resolved" in step.reason.lower()


def assert_settled() -> None:
    """Assert that all workflows have ended, and that nothing is left to do."""
    assert not Workflow.objects.exclude(status__in=FINAL_WORKFLOWS, trouble="").exists()
    assert not StepEnd.objects.exists()
    assert not Step.objects.filter(is_due=True).exists()
    assert not Task.objects.filter(step__isnull=False, status="blocked").exists()
