"""A schedule's form never silently replaces a newer edit, and reads times as the guide says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from taskqueue import Every, Once, rules, schedules
from taskqueue.admin.schedules.form import ScheduleForm
from taskqueue.admin.schedules.running import RunForm
from taskqueue.models import Audit, Schedule, Task
from tests.admin.conftest import LogIn
from tests.admin.rows import SECRET
from tests.admin.schedule_rows import errors_of, filled, simple_schedule
from tests.admin.test_admin import url
from tests.admin.test_schedules_editing import posted
from tests.sample.tasks import add, echo, log_in

pytestmark = pytest.mark.django_db


def test_an_edit_that_knows_nothing_of_a_newer_one_is_refused_once(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    address = url("schedule", "edit", schedule.pk)
    form = client.get(address).context["form"]
    schedules.edit(schedule.name, rule=Every(hours=2), by="ann")
    answer = client.post(address, posted(form, overlap="allow"))
    refused = answer.context["form"]
    assert "has changed this schedule" in refused.errors["__all__"][0]
    assert b"has changed this schedule" in answer.content
    assert refused["overlap"].value() == "allow"
    assert schedules.get(schedule.name).rule["interval"] == 7200
    assert schedules.get(schedule.name).overlap == "skip"
    assert client.post(address, posted(form, overlap="allow")).status_code == 200
    again = dict(posted(form, overlap="allow"), seen=refused["seen"].value())
    assert client.post(address, again).status_code == 302
    assert schedules.get(schedule.name).overlap == "allow"
    assert schedules.get(schedule.name).rule["interval"] == 3600


def test_a_pause_or_a_run_meanwhile_is_no_edit(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    address = url("schedule", "edit", schedule.pk)
    form = client.get(address).context["form"]
    schedules.pause(schedule.name)
    schedules.run_now(schedule.name)
    assert client.post(address, posted(form, overlap="allow")).status_code == 302
    assert schedules.get(schedule.name).paused_at is not None


def test_a_run_of_what_was_edited_meanwhile_is_refused_once(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(task=add, args=[1]), log_in_as("superuser")
    address = url("schedule", "run", schedule.pk)
    shown = client.get(address).context["form"]["seen"].value()
    given = {"arg_a": "7", "arg_args": "[7]", "seen": shown}
    schedules.pause(schedule.name)
    schedules.edit(schedule.name, task=echo, args=[1])
    answer = client.post(address, given)
    assert "has changed since you saw it" in " ".join(map(str, answer.context["messages"]))
    assert echo.name in answer.content.decode()
    assert not Task.objects.exists()
    again = {**given, "seen": answer.context["form"]["seen"].value()}
    assert client.post(address, again).status_code == 302
    assert Task.objects.get().name == echo.name


@pytest.mark.parametrize("seen", ["", "the one that is shown"])
def test_a_secret_is_not_sent_to_what_an_edit_between_read_and_lock_made(
    seen: str, log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule, client = simple_schedule(task=log_in, args=["ann", SECRET]), log_in_as("superuser")
    address = url("schedule", "run", schedule.pk)
    shown = client.get(address).context["form"]["seen"].value()
    clean = RunForm.clean

    def edited_meanwhile(form: Any) -> dict[str, Any]:
        schedules.edit(schedule.name, task=echo, args=[])
        return clean(form)

    monkeypatch.setattr(RunForm, "clean", edited_meanwhile)
    given = {"arg_user": "ann", "arg_password": "", "seen": seen and shown}
    answer = client.post(address, given)
    assert "has changed since you saw it" in " ".join(map(str, answer.context["messages"]))
    assert not Task.objects.exists()


@pytest.mark.parametrize("seen", ["soon", "a", "9" * 5000, "2026-01-01T00:00:00"])
def test_an_edit_of_no_known_version_is_refused(seen: str, log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    errors = errors_of(client, url("schedule", "edit", schedule.pk), seen=seen)
    assert list(errors) == ["__all__"]
    assert not Audit.objects.filter(noun="schedule", verb="edit").exists()


def test_an_edit_that_comes_between_is_not_replaced(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    is_valid = ScheduleForm.is_valid

    def be_slow(form: Any) -> bool:
        found = is_valid(form)
        schedules.edit(schedule.name, rule=Every(hours=2))
        return found

    monkeypatch.setattr(ScheduleForm, "is_valid", be_slow)
    errors = errors_of(client, url("schedule", "edit", schedule.pk))
    assert "has changed this schedule" in errors["__all__"][0]
    assert schedules.get(schedule.name).rule["interval"] == 7200


# Times of the wall clock


@pytest.mark.parametrize("changes", [{"kind": "once", "at": ""}, {"start": ""}, {"end": ""}])
def test_a_time_that_the_zone_leaves_out_is_refused(
    changes: dict[str, str], log_in_as: LogIn
) -> None:
    field = list(changes)[-1]
    given = changes | {field: "2099-03-29 02:30"}
    errors = errors_of(log_in_as("superuser"), url("schedule", "add"), **given)
    assert list(errors) == [field]
    assert "2099-03-29 02:30:00 does not exist in Europe/Berlin" in errors[field][0]
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    ("text", "hour"),
    [("2099-10-25 02:30", 0), ("2099-10-25 02:30+01:00", 1), ("2099-03-29 02:30+01:00", 1)],
)
def test_a_time_that_comes_twice_is_the_first_unless_its_offset_says_other(
    text: str, hour: int, log_in_as: LogIn
) -> None:
    given = filled(kind="once", at=text)
    assert log_in_as("superuser").post(url("schedule", "add"), given).status_code == 302
    at = datetime.fromisoformat(text).replace(hour=hour, tzinfo=UTC)
    assert rules.from_json(Schedule.objects.get().rule) == Once(at)


def test_a_limit_that_the_kind_does_not_have_may_be_left_out_of_the_clock(
    log_in_as: LogIn,
) -> None:
    given = filled(kind="once", at="2099-12-01 09:00", start="2099-03-29 02:30")
    assert log_in_as("superuser").post(url("schedule", "add"), given).status_code == 302
