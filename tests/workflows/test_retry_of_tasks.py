"""Retrying a task of a workflow by hand retries its step."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection as default_connection

from taskqueue import chain, control, group, workflow
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.connections import transaction
from taskqueue.engine.record import record
from taskqueue.engine.statement import fetch
from taskqueue.engine.workflows.serving import serve
from taskqueue.exceptions import ChangedMeanwhile, TransitionRefused
from taskqueue.models import Audit, Lease, Step, StepEnd, Task, Workflow
from taskqueue.testing import run_next
from taskqueue.workflows import Builder
from tests.engine.steps import another_connection, claim, outcome, policy
from tests.engine.test_record_races import IS_WAITING
from tests.sample.tasks import echo
from tests.worker_process import wait_until
from tests.workflows.steps_of import assert_settled, finish, statuses
from tests.workflows.test_retry import BAD, bad, picky, spread  # noqa: F401  (its fixture)

pytestmark = pytest.mark.django_db(transaction=True)


@workflow(name="tests.lenient")
def lenient(wf: Builder) -> None:
    wf.step(echo.s(wf.step(picky.s(1), on_failure="continue")))


def end_ready_tasks() -> None:
    """Record failures for good, as a worker does that is killed before it advances workflows."""
    with transaction(default_connection):
        ends = [
            outcome(each, OutcomeKind.FAILED, error_class="ValueError", error_message="bad")
            for each in claim(5)
        ]
        record(default_connection, ends, policy=policy())


def failed_task() -> Task:
    return Task.objects.get(status="failed")


def test_a_task_that_was_cancelled_before_its_release_waits_for_it_again() -> None:
    run = chain(echo.s(1), echo.s()).enqueue()
    last = Task.objects.get(status="blocked")
    control.cancel(last.id)
    while serve(default_connection):
        pass
    control.retry(last.id)
    last.refresh_from_db()
    assert last.status == "blocked"
    assert finish(run).return_value == [[[[1], {}]], {}]
    assert_settled(run)


def test_a_failed_task_is_retried_with_its_step() -> None:
    run = finish(chain(picky.s(0), picky.si(1), echo.s()).enqueue())
    row = failed_task()
    BAD.clear()
    control.retry(row.id, by="eve", reason="mended")
    finish(run)
    assert run.status == "succeeded"
    assert Lease.objects.filter(task=row.id).count() == 2
    assert Lease.objects.count() == 4
    of_task = Audit.objects.get(subject=str(row.id), verb="retry")
    of_workflow = Audit.objects.get(subject=str(run.id), verb="retry")
    assert (of_task.actor, of_task.reason, of_task.before) == ("eve", "mended", "failed")
    assert (of_workflow.actor, of_workflow.detail) == ("eve", f"task {row.id}")
    assert_settled(run)


def test_a_member_is_retried_while_others_have_not_ended() -> None:
    run = (group((picky.s(n) for n in (1, 2, 3)), tolerate=3) | echo.s()).enqueue()
    run_next(errors="record")
    row = failed_task()
    step = Step.objects.get(kind="map")
    assert (step.status, step.ended, step.failures) == ("running", 1, 1)
    BAD.clear()
    control.retry(row.id)
    step.refresh_from_db()
    assert (step.status, step.ended, step.failures) == ("running", 0, 0)
    with pytest.raises(TransitionRefused, match="Only finished"):
        control.retry(row.id)
    finish(run)
    assert run.return_value == [[[1, 2, 3]], {}]
    assert Lease.objects.count() == 5
    assert_settled(run)


def test_a_member_whose_step_fails_because_of_others_is_not_retried() -> None:
    BAD.update({1, 2})
    run = group(picky.s(n) for n in (1, 2, 3)).enqueue()
    run_next(errors="record")
    run_next(errors="record")
    run.refresh()
    rows = Task.objects.filter(status="failed")
    with pytest.raises(TransitionRefused, match="because of other tasks"):
        control.retry(rows[0].id)
    assert run.status == "running"
    assert rows.count() == 2
    assert_counted(run)


def assert_counted(run: Any) -> None:
    step = Step.objects.get(workflow=run.id)
    ended = Task.objects.filter(step=step.id, finished_at__isnull=False).count()
    assert (step.ended, step.held) == (ended, 0)


def test_the_only_failure_of_a_running_map_is_retried_with_what_it_kept_back() -> None:
    BAD.add(0)
    run = group((picky.s(n) for n in range(4)), concurrency=2).enqueue()
    run_next(errors="record")
    assert Task.objects.count() == 2
    BAD.clear()
    control.retry(failed_task().id)
    finish(run)
    assert run.return_value == [0, 1, 2, 3]
    assert_settled(run)


def test_a_tolerated_failure_of_a_step_that_succeeded_is_not_retried() -> None:
    run = finish(group([picky.s(1), picky.s(2)], tolerate=1).enqueue())
    assert run.status == "succeeded"
    with pytest.raises(TransitionRefused, match="has succeeded without task"):
        control.retry(failed_task().id)


def test_a_task_that_succeeded_is_not_retried() -> None:
    run = finish(chain(picky.s(0), picky.si(1)).enqueue())
    with pytest.raises(TransitionRefused, match="succeeded"):
        control.retry(Task.objects.get(status="succeeded").id)
    assert (run.status, Audit.objects.exists()) == ("failed", False)


def test_a_task_of_a_fan_out_is_retried_alone() -> None:
    run = finish(chain(spread.s(3), echo.s()).enqueue())
    BAD.clear()
    control.retry(failed_task().id)
    finish(run)
    assert run.return_value == [[[0, 1, 2]], {}]
    assert Lease.objects.count() == 6
    assert_settled(run)


def test_a_failed_step_that_may_fail_is_retried_by_its_task() -> None:
    run = finish(lenient.enqueue())
    assert statuses(run) == {"picky": "failed", "echo": "succeeded"}
    assert run.status == "succeeded"
    BAD.clear()
    control.retry(failed_task().id)
    finish(run)
    assert statuses(run) == {"picky": "succeeded", "echo": "succeeded"}
    assert Lease.objects.count() == 3
    assert_settled(run)


def test_a_task_that_changed_meanwhile_is_not_retried(admin_user: User) -> None:
    run = finish(picky.s(1).enqueue())
    row = failed_task()
    seen = {"error_message": "another"}
    with pytest.raises(ChangedMeanwhile):
        control.retry(row.id, seen=seen)
    assert run.status == "failed"


def test_ends_that_are_noted_are_counted_before_a_retry() -> None:
    run = group([picky.s(1), picky.s(2)]).enqueue()
    end_ready_tasks()
    assert StepEnd.objects.count() == Task.objects.filter(status="failed").count() == 2
    assert Workflow.objects.get().status == "running"
    BAD.clear()
    run.retry()
    assert not StepEnd.objects.exists()
    finish(run)
    assert run.return_value == [1, 2]
    assert_settled(run)


@pytest.mark.postgresql_only
def test_a_member_that_somebody_changes_while_its_map_is_cut_is_cancelled_too() -> None:
    BAD.update(range(4))
    run = finish(group((picky.s(n) for n in range(4)), concurrency=4).enqueue())
    Step.objects.update(concurrency=1)
    run.retry()
    held = Task.objects.filter(status="blocked").order_by("place").last()
    assert held is not None
    with another_connection() as worker, another_connection() as other:
        with transaction(other):
            other.cursor().execute(
                "SELECT 1 FROM taskqueue_task WHERE id = %s FOR UPDATE", [held.id]
            )
            end_ready_tasks()
            thread = Thread(target=serve, args=(worker,), daemon=True)
            thread.start()
            session: Any = worker.connection
            pid = session.info.backend_pid
            wait_until(lambda: fetch(default_connection, IS_WAITING, (pid,))[0][0])
        thread.join(60)
        assert not thread.is_alive()
    finish(run)
    assert run.status == "failed"
    assert Task.objects.filter(status="cancelled").count() == 3
    assert_settled(run)
