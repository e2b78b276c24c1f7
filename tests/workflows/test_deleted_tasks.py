"""Somebody deletes tasks of a workflow behind its back: it ends all the same, and says why."""

from __future__ import annotations

import pytest
from django.db import connection

from taskqueue import group, workflow
from taskqueue.engine.workflows.reconciling import reconcile
from taskqueue.engine.workflows.results import Results
from taskqueue.models import Step, Task, Workflow
from taskqueue.results.workflows import WorkflowRun
from taskqueue.testing import run_next, travelling
from taskqueue.workflows import Builder
from tests.sample.tasks import add, echo, fail
from tests.workflows.steps_of import finish, statuses
from tests.workflows.test_reconciling import repairs

pytestmark = pytest.mark.django_db(transaction=True)


def error_of(run: WorkflowRun) -> dict[str, object]:
    error = Workflow.objects.get(id=run.id).error
    assert error is not None
    return error


@pytest.mark.parametrize("status", ["ready", "blocked"])
def test_a_workflow_fails_a_minute_after_a_task_of_it_was_deleted(
    status: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = (add.s(1, 2) | add.s(10)).enqueue()
    task = Task.objects.get(status=status)
    task_id = task.id
    task.delete()
    with travelling(50):
        assert finish(run).status == "running"
    with travelling(121):
        assert finish(run).status == "failed"
    assert error_of(run) == {
        "error_class": "taskqueue.exceptions.TaskDoesNotExist",
        "message": f"Task {task_id} was deleted.",
        "task_id": str(task_id),
    }
    assert set(statuses(run).values()) <= {"succeeded", "failed", "cancelled"}
    assert repairs() == 1
    assert [each.levelname for each in caplog.records if "repaired" in each.message] == ["ERROR"]


def test_a_deleted_member_has_failed_where_failures_are_tolerated() -> None:
    @workflow(name="tests.deleted_member")
    def tolerant(wf: Builder) -> None:
        parts = wf.step(add.starmap([(n, n) for n in range(4)]), tolerate=1, name="parts")
        wf.step(echo.s(parts))

    run = tolerant.enqueue()
    for _ in range(2):
        run_next()
    Task.objects.filter(status="ready").order_by("-id")[0].delete()
    assert finish(run).status == "running"
    with travelling(61):
        assert finish(run).status == "succeeded"
    assert run.return_value == [[[0, 2, 4, None]], {}]
    assert list(Results(connection.alias, run.id).errors_of("parts")) == [3]
    assert repairs() == 1


def test_no_more_errors_are_read_than_are_asked_for() -> None:
    @workflow(name="tests.deleted_members")
    def tolerant(wf: Builder) -> None:
        wf.step(fail.starmap([(str(n),) for n in range(3)]), tolerate=3, name="parts")

    run = tolerant.enqueue()
    run_next()
    Task.objects.filter(status="ready").delete()
    with travelling(61):
        assert finish(run).status == "succeeded"
    step, results = Step.objects.get(name="parts"), Results(connection.alias, run.id)
    assert list(results.errors(step, most=2)) == [0, 1]
    assert list(results.errors(step)) == [0, 1, 2]


def test_a_member_that_was_deleted_after_its_end_is_counted_once() -> None:
    run = group(add.s(n, 1) for n in range(3)).enqueue()
    run_next()
    Task.objects.filter(status="succeeded")[0].delete()
    with travelling(61):
        reconcile(connection)
        assert finish(run).status == "failed"
    assert run.steps["add"].ended == 3
