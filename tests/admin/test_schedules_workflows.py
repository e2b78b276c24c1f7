"""The admin schedules workflows, and links to those that were enqueued."""

from __future__ import annotations

import pytest

from taskqueue import schedules, workflow
from taskqueue.models import Occurrence, Schedule, Workflow
from taskqueue.workflows import Builder
from tests.admin.conftest import LogIn
from tests.admin.rows import SECRET
from tests.admin.schedule_rows import errors_of, filled, simple_schedule
from tests.admin.test_admin import read, url
from tests.admin.test_schedules_editing import posted
from tests.sample.tasks import noop

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
    form = client.get(edit).context["adminform"].form
    client.post(edit, posted(form, overlap="allow"))
    schedule.refresh_from_db()
    assert (schedule.overlap, schedule.kwargs["token"]) == ("allow", SECRET)


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
