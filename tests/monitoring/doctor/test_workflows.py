"""What the doctor finds of workflows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from taskqueue import group
from taskqueue.models import Step, Task, Workflow
from taskqueue.monitoring.doctor import Severity, examine
from taskqueue.monitoring.doctor.workflows import look_at_workflows
from tests.monitoring.rows import HOUR, MINUTE, ago
from tests.sample.tasks import add, echo
from tests.workflows.steps_of import finish
from tests.workflows.test_reconciling import end_without_folding
from tests.workflows.test_running import diamond

pytestmark = pytest.mark.django_db


def found() -> list[tuple[str, str]]:
    """What is not all right, and how severe it is."""
    return [
        (str(each.severity), each.seen)
        for each in look_at_workflows(connection)
        if each.severity is not Severity.OK
    ]


def test_all_is_well_where_workflows_move_on() -> None:
    assert found() == []
    diamond.enqueue(1)
    finish(diamond.enqueue(1))
    assert found() == []
    assert [each.seen for each in examine() if each.check == "workflows"] == [
        "Workflows move on; none is paused for long."
    ]


def test_a_workflow_in_trouble_is_a_problem() -> None:
    run = diamond.enqueue(1)
    Workflow.objects.filter(id=run.id).update(trouble="InvalidWorkflow: odd")
    [(severity, seen)] = found()
    assert severity == "problem"
    assert seen.endswith(f": 1. The first is tests.diamond {run.id}: InvalidWorkflow: odd")


def test_the_doctor_reports_steps_whose_task_is_unknown() -> None:
    run = diamond.enqueue(1)
    Step.objects.filter(workflow=run.id, name="left").update(request={"name": "shop.gone"})
    assert found() == [
        ("warning", "Steps of workflows run shop.gone, which this code does not have: 1.")
    ]
    Step.objects.filter(workflow=run.id, name="left").update(status="succeeded")
    assert found() == []


def test_the_doctor_reports_unlike_members_whose_task_is_unknown() -> None:
    run = group([add.s(1, 2), echo.s(1)], concurrency=1).enqueue()
    assert found() == []
    step = Step.objects.get(workflow=run.id)
    step.request["specs"][1]["name"] = "shop.gone"
    step.save()
    assert found() == [
        ("warning", "Steps of workflows run shop.gone, which this code does not have: 1.")
    ]


def test_ends_that_nobody_counts_are_a_problem_after_a_minute() -> None:
    (add.s(1, 2) | add.s(10)).enqueue()
    end_without_folding()
    assert found() == []
    Task.objects.exclude(finished_at=None).update(finished_at=ago(2 * MINUTE))
    [(severity, seen)] = found()
    assert severity == "problem"
    assert seen.startswith("Ends of tasks of workflows have waited to be counted for 2 min")


def test_passed_and_near_deadlines_are_reported() -> None:
    run = diamond.enqueue(1)
    rows = Workflow.objects.filter(id=run.id)
    rows.update(deadline_at=timezone.now() + HOUR)
    assert found() == []
    rows.update(deadline_at=timezone.now() + 5 * MINUTE)
    [(severity, seen)] = found()
    assert severity == "warning"
    assert seen.endswith("left until its deadline; 4 of its 4 steps have not ended.")
    rows.update(deadline_at=ago(2 * MINUTE))
    [(severity, seen)] = found()
    assert (severity, seen.split(":")[0]) == (
        "problem", "The deadlines of workflows have passed, and no worker has ended them",
    )  # fmt: skip


def test_long_pauses_and_stops_are_reported() -> None:
    run = diamond.enqueue(1)
    run.pause()
    assert found() == []
    rows = Workflow.objects.filter(id=run.id)
    rows.update(paused_at=ago(25 * HOUR))
    assert [severity for severity, _ in found()] == ["warning"]
    rows.update(paused_at=None, status="stopping", stop_requested_at=ago(HOUR))
    [(severity, seen)] = found()
    assert severity == "warning"
    assert seen.startswith("Workflows have been stopping for more than ten minutes: 1.")


def test_pruning_that_is_behind_is_reported() -> None:
    run = finish(diamond.enqueue(1))
    Workflow.objects.filter(id=run.id).update(prune_after=ago(timedelta(hours=3)))
    [(severity, seen)] = found()
    assert severity == "warning"
    assert seen.startswith("Pruning of workflows is 3 h behind")
