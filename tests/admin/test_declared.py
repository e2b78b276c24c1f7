"""The options of a definition on pages: which values apply, and which no form can change."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import Priority, schedules, task
from taskqueue.models import Task
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import filled, simple_schedule
from tests.admin.test_admin import url
from tests.admin.test_schedules_editing import posted
from tests.admin.test_task_acts_forms import edit_url
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
PERFORMANCE = url("performance", "changelist")


@task(
    name="admin.heavy", pool="process", keep_last=30, max_memory=250, timeout=90,
    snooze_on=[BlockingIOError], priority=Priority.HIGH, give_up_on=[ValueError],
)  # fmt: skip
def heavy(number: int = 1) -> None:
    """Lift something."""


FIXED = {
    "Pool": "process", "Finished tasks that are kept": "30",
    "Errors that are not retried": "builtins.ValueError",
}  # fmt: skip


def shown_rows(options: Any) -> dict[str, str]:
    """The options that a page shows, by their labels."""
    return {str(each.label): each.text for each in options}


def test_the_page_of_a_definition_shows_its_options(log_in_as: LogIn) -> None:
    answer = log_in_as("viewer").get(PERFORMANCE, {"name": heavy.name})
    shown = shown_rows(answer.context["declared"])
    assert shown == FIXED | {
        "Queue": "default", "Priority": "50", "Maximum attempts": "1", "Time limit": "90 s",
        "Memory limit": "250", "Errors that do not count": "builtins.BlockingIOError",
    }  # fmt: skip
    page = answer.content.decode()
    assert "Lift something." in page
    assert "<dd>builtins.BlockingIOError</dd>" in page


def test_a_name_that_this_process_does_not_know_has_no_definition(log_in_as: LogIn) -> None:
    answer = log_in_as("viewer").get(PERFORMANCE, {"name": "shop.gone"})
    assert answer.context["declared"] == []


def test_forms_show_what_a_call_cannot_change_and_have_no_field_for_it(log_in_as: LogIn) -> None:
    client, made = log_in_as("superuser"), heavy.enqueue()
    schedule = simple_schedule(task=heavy)
    enqueueing = client.get(f"{url('task', 'add')}?name={heavy.name}")
    changing = client.get(edit_url(made, "update"))
    scheduling = client.get(url("schedule", "edit", schedule.pk))
    forms = [
        (enqueueing, enqueueing.context["form"], enqueueing.context["form"].fixed),
        (changing, changing.context["form"], changing.context["fixed"]),
        (scheduling, form := scheduling.context["form"], form.fixed),
    ]
    for page, form, fixed in forms:
        assert shown_rows(fixed) == FIXED
        assert "Fixed by the definition" in page.content.decode()
        assert form.fields.keys().isdisjoint({"pool", "keep_last", "give_up_on"})
        assert {"max_memory", "snooze_on", "priority"} <= form.fields.keys()


def test_an_empty_field_tells_what_the_definition_says(log_in_as: LogIn) -> None:
    page = log_in_as("superuser").get(f"{url('task', 'add')}?name={heavy.name}")
    fields = page.context["form"].fields
    assert fields["priority"].widget.attrs["placeholder"] == "50"
    assert fields["max_memory"].widget.attrs["placeholder"] == "250"
    assert fields["timeout"].widget.widgets[0].attrs["placeholder"] == "90 s"
    assert fields["max_crashes"].widget.attrs["placeholder"] == "3"
    assert fields["timeout_from"].choices[0] == ("", "as declared: start")


@pytest.mark.parametrize(
    ("typed", "number"), [("high", 50), (" LOWEST ", -100), ("-7", -7), ("0", 0)]
)
def test_a_priority_may_be_named(typed: str, number: int, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    address = f"{url('task', 'add')}?name={noop.name}"
    assert client.post(address, {"options": "{}", "priority": typed}).status_code == 302
    row = Task.objects.get()
    assert row.priority == number
    Task.objects.update(priority=1)
    shown = client.get(edit_url(row, "update")).context["form"]
    assert client.post(edit_url(row, "update"), posted(shown, priority=typed)).status_code == 302
    assert Task.objects.get().priority == number
    assert client.post(url("schedule", "add"), filled(priority=typed)).status_code == 302
    assert schedules.get("mornings").options == {"priority": number}


def test_a_priority_that_has_no_such_name_is_refused_at_its_field(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    address = f"{url('task', 'add')}?name={noop.name}"
    for wrong in ("hihg", "101", "1.5", "x" * 30, "\x00"):
        form = client.post(address, {"options": "{}", "priority": wrong}).context["form"]
        assert list(form.errors) == ["priority"], wrong
    assert "high" in str(client.post(address, {"priority": "hihg"}).context["form"].errors)
    assert not Task.objects.exists()


def test_a_schedule_whose_priority_is_stored_by_its_name_keeps_it(log_in_as: LogIn) -> None:
    client, schedule = log_in_as("superuser"), simple_schedule(options={"priority": "high"})
    address = url("schedule", "edit", schedule.pk)
    form = client.get(address).context["form"]
    assert client.post(address, posted(form)).status_code == 302
    assert schedules.get(schedule.name).options["priority"] in ("high", 50)
