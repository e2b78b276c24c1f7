"""The form of a schedule has a field for each argument of its task, and for each option."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue import schedules
from taskqueue.models import Schedule
from tests.admin.conftest import LogIn
from tests.admin.rows import SECRET
from tests.admin.schedule_rows import filled, simple_schedule
from tests.admin.test_admin import url
from tests.admin.test_schedules_editing import posted
from tests.sample.tasks import add, echo, log_in, noop

pytestmark = pytest.mark.django_db
ADD = url("schedule", "add")


def form_of(answer: Any) -> Any:
    return answer.context["form"]


def without_json(**changes: str) -> dict[str, Any]:
    """The values that the form posts once the fields of a task are shown."""
    sent = filled(**changes)
    del sent["args"], sent["kwargs"]
    return sent


def test_a_task_is_chosen_and_its_fields_are_shown_without_a_script(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "edit_schedules", "enqueue")
    page = client.get(ADD)
    assert "Show its arguments" in page.content.decode()
    assert "Choose a task or a workflow above" in page.content.decode()
    sent = without_json(task=add.name, fields_for="", expression="", _choose="1")
    chosen = client.post(ADD, sent)
    form = form_of(chosen)
    assert chosen.status_code == 200
    assert not form.errors
    assert form["name"].value() == "mornings"
    html = chosen.content.decode()
    assert 'name="arg_a"' in html
    assert 'name="arg_b" value="1"' in html
    assert not Schedule.objects.exists()
    answer = client.post(ADD, posted(form, arg_a="4", expression="0 6 * * *"))
    assert answer.status_code == 302, form_of(answer).errors
    made = schedules.get("mornings")
    assert (made.task_name, made.args, made.kwargs) == (add.name, [], {"a": 4})


def test_a_task_in_the_address_is_chosen(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    form = form_of(client.get(ADD, {"task": add.name}))
    assert form["task"].value() == add.name
    assert "arg_a" in form.fields
    assert "args" not in form.fields
    assert form_of(client.get(ADD, {"task": "shop.tasks.gone"})).is_bound is False


def test_another_task_shows_its_own_fields_before_anything_is_saved(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    schedule = simple_schedule(task=add, args=[1], kwargs={"b": 2})
    address = url("schedule", "edit", schedule.pk)
    form = form_of(client.get(address))
    assert (form["arg_a"].value(), form["arg_b"].value()) == (1, 2)
    answer = client.post(address, posted(form, task=echo.name))
    assert answer.status_code == 200
    form = form_of(answer)
    assert "arg_kwargs" in form.fields
    assert not form.errors
    assert schedules.get(schedule.name).task_name == add.name
    answer = client.post(address, posted(form, arg_args="[7]", interval_0="1", interval_1="3600"))
    assert answer.status_code == 302, form_of(answer).errors
    made = schedules.get(schedule.name)
    assert (made.task_name, made.args) == (echo.name, [7])


def test_saving_without_a_change_keeps_the_values(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    schedule = simple_schedule(task=add, args=[1], kwargs={"b": 2})
    before = Schedule.objects.values().get()
    address = url("schedule", "edit", schedule.pk)
    client.post(address, posted(form_of(client.get(address))))
    assert Schedule.objects.values().get() == before


def test_a_secret_stays_and_is_not_copied(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    schedule = simple_schedule(task=log_in, args=["bob", SECRET])
    address = url("schedule", "edit", schedule.pk)
    page = client.get(address)
    assert SECRET not in page.content.decode()
    answer = client.post(address, posted(form_of(page), arg_user="eve"))
    assert list(form_of(answer).errors) == ["arg_password"]
    client.post(address, posted(form_of(page), arg_user="eve", arg_password=SECRET))
    assert schedules.get(schedule.name).args == ["eve", SECRET]
    copy = form_of(client.get(ADD, {"copy": schedule.pk}))
    assert copy["arg_user"].value() == "eve"
    answer = client.post(ADD, posted(copy, name="copy"))
    assert list(form_of(answer).errors) == ["arg_password"]


def test_an_invalid_argument_is_reported_at_its_field(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    sent = without_json(task=add.name, fields_for=add.name)
    for given, field in (({"arg_a": "x"}, "arg_a"), ({"arg_a": ""}, "arg_a")):
        assert list(form_of(client.post(ADD, {**sent, **given})).errors) == [field]
    assert not Schedule.objects.exists()


def test_a_task_without_arguments_says_so(log_in_as: LogIn) -> None:
    page = log_in_as("superuser").get(ADD, {"task": noop.name})
    assert "It takes no arguments." in page.content.decode()


OPTIONS = {
    "timeout_from": "progress", "stop_grace_0": "9", "retry_on": "same", "deadline": "2h",
    "expires_after_0": "30", "metadata": '{"a": 1}', "unique_key": "one", "unique_per": "day",
    "lease_duration_0": "60", "max_crashes": "4", "retention_0": "2", "retention_1": "86400",
}  # fmt: skip


def test_every_option_has_a_field_and_stays_when_saved_again(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    answer = client.post(ADD, filled(**OPTIONS))
    assert answer.status_code == 302, form_of(answer).errors
    stored = schedules.get("mornings").options
    assert stored == {
        "timeout_from": "progress", "stop_grace": 9, "retry_on": "same", "deadline": 7200,
        "expires_after": 30, "metadata": {"a": 1}, "unique_key": "one", "unique_per": "day",
        "lease_duration": 60, "max_crashes": 4, "retention": 172_800,
    }  # fmt: skip
    address = url("schedule", "edit", Schedule.objects.get().pk)
    form = form_of(client.get(address))
    assert form["options"].value() == "{}"
    client.post(address, posted(form))
    assert schedules.get("mornings").options == stored


def test_an_invalid_option_is_reported_at_its_field(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    answer = client.post(ADD, filled(lease_duration_0="0", workers="0"))
    assert {"lease_duration", "workers"} <= form_of(answer).errors.keys()
