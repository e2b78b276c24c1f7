"""What an older version has stored, without what was added since, is shown and runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client

from taskqueue import chain, group, schedules
from taskqueue.control import TaskFilter, start_operation
from taskqueue.engine.schedules.runs import spec_from
from taskqueue.engine.schedules.serving import Scheduler
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Incident, Operation, Schedule, Step, Task, Workflow
from taskqueue.testing import run_due
from tests.admin.conftest import LogIn, log_in_as  # noqa: F401  (a fixture)
from tests.admin.schedule_rows import messages_of, simple_schedule
from tests.admin.test_admin import url
from tests.alerts.steps import look_now, make_rule
from tests.monitoring.rows import make_worker
from tests.sample.rest_tasks import tell
from tests.sample.tasks import add, echo, noop
from tests.workflows.steps_of import finish
from tests.workflows.test_running import diamond

pytestmark = pytest.mark.django_db
API = "/api/v1/"
ADDED = ("unique_per", "places", "when_full", "debounce_in", "debounce_most", "limit_plan", "at")


def older(stored: Any) -> Any:
    """Return a stored value whose specs lack the fields that were added last."""
    if isinstance(stored, list):
        return [older(each) for each in stored]
    if not isinstance(stored, dict):
        return stored
    return {name: older(value) for name, value in stored.items() if name not in ADDED}


def serve_the_next_time() -> None:
    """Let the schedule be due, and serve it."""
    hour = timedelta(hours=1)
    Schedule.objects.update(served_until=F("served_until") - hour, next_at=F("next_at") - hour)
    Scheduler().step(connection)


def seen(client: Client, *addresses: str) -> None:
    """Look at pages; each is shown."""
    for address in addresses:
        assert client.get(address).status_code == 200, address


def test_a_spec_without_the_fields_that_were_added_is_read() -> None:
    schedule = simple_schedule(task=add, args=[1])
    stored = older(schedule.request["spec"])
    assert not stored.keys() & {*ADDED}
    assert EnqueueSpec.from_json(stored) == spec_from(schedule.request)
    for strange in ({"version": 99}, {"colour": "red"}):
        with pytest.raises(ValueError, match="version"):
            EnqueueSpec.from_json({**stored, **strange})
    with pytest.raises(InvalidSchedule, match="another version"):
        spec_from({"spec": {**stored, "version": 2}})


def test_a_schedule_is_shown_edited_and_run(log_in_as: LogIn) -> None:  # noqa: F811
    schedule = simple_schedule(task=add, args=[1], overlap="allow")
    Schedule.objects.update(request=older(schedule.request), options={})
    client = log_in_as("superuser")
    pages = ("change", "edit", "run", "delete")
    seen(client, url("schedule", "changelist"), *(url("schedule", it, schedule.pk) for it in pages))
    seen(client, f"{API}schedules/", f"{API}schedules/hourly/")
    assert "requested" in messages_of(
        client, url("schedule", "act", schedule.pk), {"verb": "run_now"}
    )
    assert [run.result.return_value for run in run_due()] == [2]
    other = {"arg_a": "5", "arg_b": "", "once": ""}
    assert "requested" in messages_of(client, url("schedule", "run", schedule.pk), other)
    serve_the_next_time()
    assert [run.result.return_value for run in run_due()] == [6, 2]
    assert schedules.get("hourly").trouble == ""


def test_a_schedule_of_another_version_says_so_until_a_worker_starts_that_knows_its_task(
    log_in_as: LogIn,  # noqa: F811
) -> None:
    schedule = simple_schedule(task=tell, args=["ann"], overlap="allow")
    Schedule.objects.update(request={**schedule.request, "spec": {"version": 2}})
    client, act = log_in_as("superuser"), url("schedule", "act", schedule.pk)
    assert "another version" in messages_of(client, act, {"verb": "run_now"})
    answer = client.post(f"{API}schedules/hourly/run/", {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_schedule")
    serve_the_next_time()
    assert "another version" in schedules.get("hourly").trouble
    seen(client, url("schedule", "change", schedule.pk), f"{API}schedules/hourly/")
    seen(client, url("dashboard", "changelist"))
    schedules.sync()
    assert "requested" in messages_of(client, act, {"verb": "run_now"})
    assert len(run_due()) == 2  # That of its rule, too.


@pytest.mark.django_db(transaction=True)
def test_a_workflow_is_shown_and_goes_on(log_in_as: LogIn) -> None:  # noqa: F811
    run = chain(
        group(add.s(n, 1) for n in range(3)), echo.s(), group([echo.s(1), noop.si()])
    ).enqueue()
    for step in Step.objects.all():
        step.request = older(step.request)
        step.save(update_fields=["request"])
    client = log_in_as("superuser")
    seen(client, url("workflow", "changelist"), url("workflow", "change", run.id))
    seen(client, f"{API}workflows/", f"{API}workflows/{run.id}/")
    finish(run)
    assert run.status == "succeeded"
    seen(client, url("workflow", "change", run.id), f"{API}workflows/{run.id}/")


def test_a_schedule_of_a_workflow_is_shown_and_run(log_in_as: LogIn) -> None:  # noqa: F811
    schedule = simple_schedule(task=diamond, args=[1])
    Schedule.objects.update(request=older(schedule.request))
    client, act = log_in_as("superuser"), url("schedule", "act", schedule.pk)
    seen(client, url("schedule", "change", schedule.pk), f"{API}schedules/hourly/")
    assert "requested" in messages_of(client, act, {"verb": "run_now"})
    assert Workflow.objects.get().name == diamond.name


def test_a_task_an_alert_and_an_operation_are_shown(log_in_as: LogIn) -> None:  # noqa: F811
    task = add.enqueue(1)
    Task.objects.update(options={}, metadata={})
    make_worker("w1", trouble="no disk")
    make_rule(mail=[])
    look_now()
    incident = Incident.objects.get()
    del incident.words["times"], incident.words["ages"], incident.words["remedy"]
    incident.save()
    which = TaskFilter(statuses=["ready"])
    operation = start_operation("cancel", which)
    Operation.objects.update(chosen={"which": operation.chosen["which"]})
    client = log_in_as("superuser")
    seen(client, url("task", "change", task.id), f"{API}tasks/{task.id}/")
    seen(client, url("incident", "change", incident.pk), f"{API}alerts/{incident.pk}/")
    seen(client, url("operation", "change", operation.id), f"{API}operations/{operation.id}/")
