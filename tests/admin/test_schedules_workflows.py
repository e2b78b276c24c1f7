"""The admin schedules workflows, and links to those that were enqueued."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from taskqueue import schedules, workflow
from taskqueue.models import Audit, Occurrence, Schedule, Task, Workflow
from taskqueue.workflows import Builder
from tests.admin.conftest import LogIn
from tests.admin.rows import SECRET
from tests.admin.schedule_rows import errors_of, filled, simple_schedule
from tests.admin.test_admin import read, url
from tests.admin.test_schedules_editing import posted
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db


@workflow(name="admin.flow", sensitive={"token"})
def flow(wf: Builder, day: str, token: str = "") -> None:
    """One step."""
    wf.step(noop.s())


def test_the_form_schedules_a_workflow_and_keeps_its_secrets(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "edit_schedules", "enqueue")
    page = read(client, url("schedule", "add"))
    assert '<optgroup label="Workflows">' in page
    call = {"kwargs": f'{{"day": "monday", "token": "{SECRET}"}}'}
    client.post(url("schedule", "add"), filled(task=flow.name, **call))
    schedule = Schedule.objects.get()
    assert (schedule.task_name, schedule.is_workflow) == (flow.name, True)
    edit = url("schedule", "edit", schedule.pk)
    assert SECRET not in read(client, edit)
    form = client.get(edit).context["form"]
    client.post(edit, posted(form, overlap="allow"))
    schedule.refresh_from_db()
    assert (schedule.overlap, schedule.kwargs["token"]) == ("allow", SECRET)


def test_a_workflow_has_a_field_for_each_of_its_parameters(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    page = client.get(url("schedule", "add"), {"task": flow.name})
    form = page.context["form"]
    assert [each.name for each in form.argument_fields] == ["arg_day", "arg_token"]
    assert 'type="password" name="arg_token"' in page.content.decode()
    sent = posted(form, name="flows", kind="every", interval_0="1", interval_1="3600")
    answer = client.post(url("schedule", "add"), {**sent, "arg_day": "monday"})
    assert answer.status_code == 302, answer.context["form"].errors
    made = schedules.get("flows")
    assert (made.is_workflow, made.args, made.kwargs) == (True, [], {"day": "monday"})
    form = client.get(url("schedule", "edit", made.pk)).context["form"]
    assert form["arg_day"].value() == "monday"


def test_a_workflow_is_run_once_with_other_arguments(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "edit_schedules", "enqueue")
    schedule = simple_schedule(task=flow, kwargs={"day": "monday", "token": SECRET})
    address = url("schedule", "run", schedule.pk)
    assert f'href="{address}"' in read(client, url("schedule", "change", schedule.pk))
    page = client.get(address)
    assert page.context["form"]["arg_day"].value() == "monday"
    assert SECRET not in page.content.decode()
    refused = client.post(address, {"arg_day": "tuesday", "arg_token": ""})
    assert list(refused.context["form"].errors) == ["arg_token"]
    assert not Workflow.objects.exists()
    given = {"arg_day": "tuesday", "arg_token": "other", "reason": "again"}
    assert client.post(address, given).status_code == 302
    run = Workflow.objects.get()
    assert run.kwargs == {"day": "tuesday", "token": "other"}
    assert Occurrence.objects.get().requested_by == "user"
    assert Audit.objects.get(verb="run_now").reason == "again"
    assert Schedule.objects.get().kwargs == {"day": "monday", "token": SECRET}


def test_a_run_that_is_refused_keeps_what_was_typed(log_in_as: LogIn) -> None:
    client, schedule = log_in_as("superuser"), simple_schedule(task=add, args=[1])
    schedules.run_now(schedule.name)
    answer = client.post(url("schedule", "run", schedule.pk), {"arg_a": "7", "arg_b": "2"})
    assert answer.context["form"]["arg_a"].value() == "7"
    assert "has not ended" in " ".join(map(str, answer.context["messages"]))
    Schedule.objects.update(task_name="shop.gone")
    assert client.get(url("schedule", "run", schedule.pk)).status_code == 302


def test_the_page_of_a_run_says_where_the_stored_arguments_do_not_fit(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(task=add, args=[1]), log_in_as("superuser")
    address, told = url("schedule", "run", schedule.pk), "do not fit what it runs"
    assert told not in read(client, address)
    Schedule.objects.update(args=[1, 2, 3])
    assert told in read(client, address)
    assert client.get(address).context["form"]["arg_b"].value() == 1
    assert client.post(address, {"arg_a": "7", "arg_b": "2"}).status_code == 302
    assert Task.objects.get().kwargs == {"a": 7, "b": 2}


def test_links_to_the_form_that_enqueues_are_for_those_whom_it_fills(log_in_as: LogIn) -> None:
    of_task, of_workflow = simple_schedule(), simple_schedule("flow", task=flow, args=["monday"])
    by_form = f"{url('task', 'add')}?name={noop.name}&amp;schedule={of_task.pk}"
    cases = (
        ("edit_schedules enqueue", "run", False),
        ("edit_schedules enqueue view_schedule", "run", True),
        ("edit_schedules enqueue view_schedule", "change", False),
        ("enqueue view_schedule", "change", True),
        ("view_schedule", "change", False),
    )
    for permissions, page, is_led in cases:
        User.objects.all().delete()
        client = log_in_as("staff", *permissions.split())
        shown = read(client, url("schedule", page, of_task.pk))
        assert (by_form in shown) is is_led, (permissions, page)
        assert url("task", "add") + "?" not in read(client, url("schedule", page, of_workflow.pk))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"queue_name": "mail"}, "queue_name"),
        ({"options": '{"max_attempts": 3}'}, "options"),
        ({"args": "[1, 2, 3]"}, "args"),
    ],
)
def test_the_form_tells_what_a_workflow_does_not_take(
    changes: dict[str, str], field: str, log_in_as: LogIn
) -> None:
    client = log_in_as("staff", "edit_schedules", "enqueue")
    values = {"task": flow.name, "kwargs": '{"day": "monday"}', **changes}
    assert field in errors_of(client, url("schedule", "add"), **values)
    assert not Schedule.objects.exists()


def test_the_page_of_a_schedule_says_whether_it_runs_a_task_or_a_workflow(
    log_in_as: LogIn,
) -> None:
    client = log_in_as("superuser")
    of_workflow = simple_schedule("nightly flow", task=flow, args=["monday"])
    of_task = simple_schedule("nightly task")
    shown = read(client, url("schedule", "change", of_workflow.pk))
    assert "<dt>Workflow</dt>" in shown
    assert flow.name in shown
    assert "Task name" not in shown
    assert "<dt>Task name</dt>" in read(client, url("schedule", "change", of_task.pk))


def test_pages_show_the_workflow_of_a_run(log_in_as: LogIn) -> None:
    schedule = simple_schedule(task=flow, args=["monday", SECRET])
    schedules.run_now(schedule.name)
    workflow_id, client = Workflow.objects.get().pk, log_in_as("superuser")
    pages = [
        url("schedule", "change", schedule.pk),
        url("occurrence", "changelist"),
        url("occurrence", "change", Occurrence.objects.get().pk),
    ]
    for page in pages:
        shown = read(client, page)
        assert f'href="{url("workflow", "change", workflow_id)}"' in shown
        assert "pruned" not in shown
        assert SECRET not in shown
    Workflow.objects.all().delete()
    for page in pages:
        shown = read(client, page)
        assert str(workflow_id) in shown
        assert "pruned" in shown
