"""Questions that the tests of running workflows ask."""

from __future__ import annotations

from taskqueue.models import Dependency, Step, StepCalls, StepEnd, Task
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import run_due


def finish(run: WorkflowRun) -> WorkflowRun:
    """Run all that is due, and read the workflow."""
    run_due(errors="record")
    run.refresh()
    return run


def statuses(run: WorkflowRun) -> dict[str, str]:
    """Return the statuses of its steps, by name."""
    return {name: str(step.status) for name, step in run.steps.items()}


def assert_settled(run: WorkflowRun) -> None:
    """Assert that nothing is left over of a workflow that has ended, and that its counts hold."""
    assert run.is_finished
    steps = Step.objects.filter(workflow_id=run.id)
    assert not StepEnd.objects.filter(workflow_id=run.id).exists()
    # A retry sends what was not sent.
    done = steps.filter(status="succeeded")
    assert not StepCalls.objects.filter(step__in=done).exists()
    assert not steps.filter(is_due=True).exists()
    assert not steps.filter(finished_at=None).exists()
    assert not Task.objects.filter(step__in=steps, status="blocked").exists()
    for step in steps.filter(status__in=["succeeded", "failed"]).exclude(kind="workflow"):
        ended = Task.objects.filter(step=step, finished_at__isnull=False)
        assert step.ended == ended.count() == step.members
        fans = Step.objects.filter(parent_step_id=step.id)
        assert not fans.exclude(workflow_id=run.id).exists()
        unsuccessful = (rows.exclude(status="succeeded").count() for rows in (ended, fans))
        assert step.failures == sum(unsuccessful)
    assert (
        not Dependency.objects.filter(downstream__in=steps, downstream__waits__gt=0)
        .exclude(downstream__status="cancelled")
        .exists()
    )
