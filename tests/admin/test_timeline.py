"""The timeline of a task: the same for the admin, the API and the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone
from django.utils.translation import override

from taskqueue import control, schedules
from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES, VIEW_WORKFLOWS
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Lease, Task
from taskqueue.monitoring.read_models.base import EVERYTHING, ViewerWithout
from taskqueue.monitoring.timeline import TimelineEvent, timeline_of
from taskqueue.rules import Every
from tests.admin.conftest import LogIn
from tests.admin.rows import SECRET
from tests.admin.test_task_page import titles
from tests.engine.steps import claim_one, end, make_due, promote
from tests.management.test_taskqueue import run, run_json
from tests.sample.tasks import add, log_in, noop
from tests.workflows.shop import note

pytestmark = pytest.mark.django_db


def told(task: Any, viewer: Any = EVERYTHING) -> list[TimelineEvent]:
    return timeline_of(Task.objects.get(pk=task.id), viewer)


def timeline(task: Any) -> str:
    return f"/api/v1/tasks/{task.id}/timeline/"


def eventful() -> Any:
    """A task that failed, was run by hand, asked to stop, and retried."""
    task = add.using(max_attempts=9, run_after=60).enqueue(1)
    control.run_now(task.id, by="anna")
    claimed = claim_one()
    Lease.objects.update(progress=42.5, progress_message="row 4", progressed_at=timezone.now())
    end(claimed, OutcomeKind.FAILED, error_class="builtins.ValueError", error_message="too late")
    make_due(task)
    promote()
    claimed = claim_one()
    control.request_stop(task.id, by="bob", reason="of no use")
    end(claimed, OutcomeKind.STOPPED)
    control.retry(task.id, by="anna", reason="of use after all")
    return task


def test_every_face_tells_the_same_in_the_same_order(log_in_as: LogIn) -> None:
    task, client = eventful(), log_in_as("superuser")
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value="3")
    over_rest = client.get(timeline(task)).json()["events"]
    by_command = run_json("show", task.id, "--timeline")
    assert over_rest == by_command
    names = [event["title"] for event in over_rest]
    assert names == titles(client, task)
    for part in ("Attempt 1 failed", "Last progress of attempt 1", "Asked to stop", "Retried"):
        assert part in names
    assert names[0] == "Enqueued"
    assert names[-1] == "Succeeded after a total of"


def test_errors_progress_and_people_stand_in_it() -> None:
    events = told(eventful())
    failed = next(event for event in events if event.title == "Attempt 1 failed")
    assert (failed.error_class, failed.detail) == ("builtins.ValueError", "too late")
    progress = next(event for event in events if event.kind == "progressed")
    assert progress.detail == "42.5 %: row 4"
    stop = next(event for event in events if event.kind == "stop_requested")
    assert (stop.who, stop.detail) == ("bob", "of no use")
    retried = next(event for event in events if event.verb == "retry")
    assert (retried.who, retried.detail) == ("anna", "of use after all")


def test_an_entry_in_progress_has_its_start_and_no_duration(log_in_as: LogIn) -> None:
    task, client = noop.enqueue(), log_in_as("superuser")
    claim_one()
    last = told(task)[-1]
    assert (last.kind, last.took_seconds) == ("running", None)
    assert last.at == Lease.objects.get().claimed_at
    first = client.get(timeline(task))
    again = client.get(timeline(task), headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304


def test_a_task_that_became_ready_later_says_when() -> None:
    task = noop.using(run_after=600).enqueue()
    assert "ready" not in [event.kind for event in told(task)]
    due = timezone.now() + timedelta(seconds=600)
    Task.objects.update(status="ready", ready_at=due, run_after=due)
    assert [event.at for event in told(task) if event.kind == "ready"] == [due]


def test_runs_of_schedules_and_steps_of_workflows_say_of_which() -> None:
    schedules.create("nightly", task=noop, rule=Every(3600))
    schedules.run_now("nightly")
    run_of = Task.objects.get()
    event = next(each for each in told(run_of) if each.kind == "scheduled")
    assert event.detail == "nightly"
    workflow = note.s().enqueue()
    step = Task.objects.get(step__workflow_id=workflow.id)
    event = next(each for each in told(step) if each.kind == "step")
    assert event.detail in workflow.steps


def test_a_viewer_sees_of_it_what_they_may_view() -> None:
    task, workflow = eventful(), note.s().enqueue()
    kinds = {event.kind for event in told(task, ViewerWithout(frozenset({VIEW_LEASES})))}
    assert kinds == {"enqueued", "action", "waiting", "ready"} & kinds | {"enqueued", "action"}
    kinds = {event.kind for event in told(task, ViewerWithout(frozenset({VIEW_AUDITS})))}
    assert "action" not in kinds
    step = Task.objects.get(step__workflow_id=workflow.id)
    hidden = ViewerWithout(frozenset({VIEW_WORKFLOWS}))
    assert "step" not in {event.kind for event in told(step, hidden)}


def test_arguments_are_not_part_of_it() -> None:
    task = log_in.enqueue("anna", SECRET)
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value=f'"{SECRET}"')
    assert SECRET not in str(told(task))


def test_the_command_prints_it_in_english_and_the_admin_in_its_language(log_in_as: LogIn) -> None:
    task = noop.enqueue()
    with override_settings(LANGUAGE_CODE="zh-hans"), override("zh-hans"):
        assert "Enqueued" in run("show", task.id, "--timeline")
        assert "Enqueued" not in titles(log_in_as("superuser"), task)
