"""The admin's form creates and edits schedules, and tells what is wrong beside the field."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from taskqueue import AfterEnd, Cron, DailyWindow, Every, Once, rules, schedules
from taskqueue.declarations.definition import registry
from taskqueue.models import Audit, Schedule
from taskqueue.monitoring.read_models.schedule import MOST_TIMES
from taskqueue.monitoring.reading import now
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET
from tests.admin.schedule_rows import (
    BERLIN,
    declared_schedule,
    errors_of,
    evil_schedule,
    filled,
    simple_schedule,
)
from tests.admin.test_admin import read, url
from tests.sample.tasks import add, echo, log_in

pytestmark = pytest.mark.django_db
NINE = datetime(2099, 12, 1, 9, tzinfo=BERLIN)
KINDS = {
    "cron": ({"kind": "cron"}, Cron("0 6 * * mon-fri", tz="Europe/Berlin")),
    "limited cron": (
        {"start": "2099-12-01 09:00", "end": "2100-01-01 00:00+00:00"},
        Cron("0 6 * * mon-fri", tz="Europe/Berlin", start=NINE,
             end=datetime(2100, 1, 1, tzinfo=UTC)),
    ),
    "every": (
        {"kind": "every", "interval_0": "1.5", "interval_1": "60"}, Every(seconds=90),
    ),
    "after end": (
        {"kind": "after_end", "interval_0": "2", "interval_1": "3600"}, AfterEnd(hours=2),
    ),
    "daily window": (
        {"kind": "daily_window", "first": "22:00", "last": "02:00", "every_0": "5"},
        DailyWindow("22:00", "02:00", every=300, days="mon,tue", tz="Europe/Berlin"),
    ),
    "once": ({"kind": "once", "at": "2099-12-01 09:00"}, Once(NINE)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_rule_is_created_and_stays_as_it_is_when_saved_again(
    kind: str, log_in_as: LogIn
) -> None:
    changes, rule = KINDS[kind]
    client = log_in_as("staff", "edit_schedules", "enqueue")
    answer = client.post(url("schedule", "add"), filled(**changes))
    schedule = Schedule.objects.get(name="mornings")
    assert answer.headers["Location"] == url("schedule", "change", schedule.pk)
    assert rules.from_json(schedule.rule) == rule
    before = Schedule.objects.values().get()
    form = client.get(url("schedule", "edit", schedule.pk)).context["form"]
    client.post(url("schedule", "edit", schedule.pk), posted(form))
    assert Schedule.objects.values().get() == before


def test_a_stored_jitter_that_is_too_long_prevents_no_other_edit(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "edit_schedules", "enqueue")
    schedule = simple_schedule()
    Schedule.objects.update(jitter=timedelta(hours=2))
    address = url("schedule", "edit", schedule.pk)
    form = client.get(address).context["form"]
    changes = posted(form)
    changes.pop("enabled")
    assert client.post(address, changes).status_code == 302
    assert not Schedule.objects.get().is_enabled
    longer = client.post(address, posted(form, missed="skip"))
    assert "jitter" in longer.context["form"].errors


def posted(form: Any, **changes: Any) -> dict[str, Any]:
    """What a browser posts of a form as it is shown."""
    values: dict[str, Any] = {}
    for bound in form:
        value = bound.value()
        if hasattr(bound.field.widget, "decompress"):
            for place, part in enumerate(bound.field.widget.decompress(value)):
                values[f"{bound.name}_{place}"] = "" if part is None else part
        elif value is not False and value is not None:
            values[bound.name] = value
    return values | changes


def test_the_form_stores_the_written_values(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    client.post(
        url("schedule", "add"),
        filled(
            name="all", task=add.name, args="[1]", kwargs='{"b": 2}', queue_name="mail",
            priority="5", options='{"max_attempts": 3, "timeout": 1.5}', missed="window",
            missed_window_0="2", missed_window_1="60", overlap="queue_one",
            pause_after_failures="3", enabled="", reason=EVIL,
        ),
    )  # fmt: skip
    schedule = schedules.get("all")
    assert (schedule.task_name, schedule.args, schedule.kwargs) == (add.name, [1], {"b": 2})
    assert schedule.options == {
        "queue_name": "mail", "priority": 5, "max_attempts": 3, "timeout": 1.5
    }  # fmt: skip
    assert (schedule.missed, schedule.overlap) == ("window", "queue_one")
    assert schedule.missed_window == timedelta(minutes=2)
    assert schedule.pause_after_failures == 3
    assert not schedule.is_enabled
    line = Audit.objects.get(subject="all")
    assert (line.actor, line.noun, line.verb, line.reason) == ("user", "schedule", "create", EVIL)
    assert LogEntry.objects.get().object_id == str(schedule.pk)


def test_an_edit_changes_what_was_changed(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    address = url("schedule", "edit", schedule.pk)
    form = client.get(address).context["form"]
    changes = {"kind": "once", "at": "2099-12-01 09:00", "overlap": "allow", "priority": "-1"}
    client.post(address, posted(form, **changes, reason="so"))
    row = schedules.get("hourly")
    assert rules.from_json(row.rule) == Once(datetime(2099, 12, 1, 9, tzinfo=UTC))
    assert (row.overlap, row.options) == ("allow", {"priority": -1})
    line = Audit.objects.get(noun="schedule", verb="edit")
    assert (line.actor, line.reason) == ("user", "so")


# Secrets


def test_a_secret_is_kept_by_an_edit_that_does_not_write_another(log_in_as: LogIn) -> None:
    schedule, client = evil_schedule(), log_in_as("superuser")
    address = url("schedule", "edit", schedule.pk)
    form = client.get(address).context["form"]
    assert (form["arg_user"].value(), form["arg_password"].value()) == (EVIL, None)
    client.post(address, posted(form, overlap="allow"))
    assert schedules.get(schedule.name).overlap == "allow"
    assert schedules.get(schedule.name).args == [EVIL, SECRET]
    form = client.get(address).context["form"]
    client.post(address, posted(form, arg_user="bob", arg_password="other"))
    assert schedules.get(schedule.name).args == ["bob", "other"]


def test_a_secret_cannot_be_moved_to_where_it_would_be_shown(log_in_as: LogIn) -> None:
    schedule, client = evil_schedule(), log_in_as("superuser")
    address = url("schedule", "edit", schedule.pk)
    secret = {"args": '["ann", "[redacted]"]', "kwargs": "{}"}
    for changes in (
        {**secret, "task": echo.name},
        {"task": log_in.name, "args": '["ann"]', "kwargs": '{"password": "[redacted]"}'},
        {"task": log_in.name, "args": '["[redacted]", "[redacted]"]'},
    ):
        assert list(errors_of(client, address, **changes)) == ["args"]
    assert schedules.get(schedule.name).args == [EVIL, SECRET]
    assert SECRET not in read(client, url("schedule", "change", schedule.pk))


def test_hidden_arguments_are_written_anew_for_a_task_that_is_known(log_in_as: LogIn) -> None:
    schedule = evil_schedule()
    Schedule.objects.update(task_name="shop.tasks.gone")
    client = log_in_as("staff", "edit_schedules", "enqueue")
    address = url("schedule", "edit", schedule.pk)
    form = client.get(address).context["form"]
    answer = client.post(address, posted(form))
    assert list(answer.context["form"].errors) == ["task"]
    # The fields of the other task come first.
    shown = client.post(address, posted(form, task=echo.name)).context["form"]
    assert "arg_args" in shown.fields
    client.post(address, posted(form, task=echo.name, fields_for=echo.name))
    assert (schedules.get(schedule.name).task_name, schedules.get(schedule.name).args) == (
        echo.name, [],
    )  # fmt: skip


# What cannot be edited


def test_a_schedule_declared_in_code_cannot_be_edited(log_in_as: LogIn) -> None:
    schedule, client = declared_schedule(), log_in_as("superuser")
    before = Schedule.objects.values().get()
    address = url("schedule", "edit", schedule.pk)
    for answer in (client.get(address, follow=True), client.post(address, filled(), follow=True)):
        told = " ".join(map(str, answer.context["messages"]))
        assert re.search(r"The schedule “.+” is declared in code, next to ", told)
    assert Schedule.objects.values().get() == before


def test_a_rule_that_this_version_cannot_read_is_replaced(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    Schedule.objects.update(rule={"kind": "lunar"})
    answer = client.post(url("schedule", "edit", schedule.pk), filled())
    assert answer.status_code == 302
    assert schedules.get(schedule.name).rule["kind"] == "cron"


def test_one_that_is_gone_is_told_so(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    address = url("schedule", "edit", schedule.pk)
    schedules.delete(schedule.name)
    for answer in (client.get(address, follow=True), client.post(address, filled(), follow=True)):
        assert "no longer exists" in " ".join(map(str, answer.context["messages"]))
    for key in ("0", "9" * 40):
        assert client.get(url("schedule", "edit", key)).status_code == 302


def test_refusals_of_the_verb_are_shown_on_the_form(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    address = url("schedule", "edit", schedule.pk)
    edit = schedules.edit

    def edit_what_is_gone(name: str, **changes: Any) -> Any:
        schedules.delete(name)
        return edit(name, **changes)

    monkeypatch.setattr(schedules, "edit", edit_what_is_gone)
    errors = errors_of(client, address)
    assert "There is no schedule" in errors["__all__"][0]


def test_the_next_times_of_a_rule_are_shown_while_it_is_typed(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "edit_schedules", "enqueue")
    page = url("schedule", "preview")
    typed = {"kind": "cron", "tz": "Europe/Berlin", "expression": "0 6 * * *"}

    def told(**changes: str) -> str:
        answer = client.get(page, typed | changes)
        assert answer.status_code == 200
        return answer.content.decode()

    html = told()
    after = now()
    rule = Cron("0 6 * * *", tz="Europe/Berlin")
    for at in list(rule.between(after, after + timedelta(days=9)))[:5]:
        assert at.strftime("%Y-%m-%d %H:%M:%S +0000") in html
    assert "61" in told(expression="61 6 * * *")
    assert "They appear when this is filled in: Expression" in told(expression="")
    assert "<table" not in client.get(page).content.decode()
    assert "No further times." in told(kind="once", at="2001-01-01 09:00")
    assert client.post(page, typed).status_code == 405


def test_a_copy_begins_with_all_values_but_the_name_and_secrets(log_in_as: LogIn) -> None:
    schedule = evil_schedule()
    client = log_in_as("superuser")
    answer = client.get(url("schedule", "add"), {"copy": schedule.pk})
    form = answer.context["form"]
    assert form["expression"].value() == "0 6 * * 1-5"
    assert not form["name"].value()
    assert SECRET not in answer.content.decode()
    assert client.get(url("schedule", "add"), {"copy": "x"}).status_code == 200


def test_options_have_fields_and_stay_when_saved_again(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    given = {"backoff": "fixed(60)", "retry_for": "ConnectionError", "timeout_0": "5",
             "timeout_1": "60", "max_attempts": "3"}  # fmt: skip
    client.post(url("schedule", "add"), filled(**given))
    schedule = Schedule.objects.get(name="mornings")
    options = {
        "backoff": {"policy": "fixed", "seconds": 60}, "retry_for": ["ConnectionError"],
        "timeout": 300, "max_attempts": 3,
    }  # fmt: skip
    assert options.keys() == schedule.options.keys()
    form = client.get(url("schedule", "edit", schedule.pk)).context["form"]
    shown = {name: form[name].value() for name in ("backoff", "max_attempts", "options")}
    assert shown == {"backoff": "fixed(jitter=0, seconds=60)", "max_attempts": 3, "options": "{}"}
    again = filled(**{**given, "backoff": shown["backoff"]})
    client.post(url("schedule", "edit", schedule.pk), again)
    assert Schedule.objects.get(name="mornings").options == schedule.options
    twice = errors_of(client, url("schedule", "add"), name="x", backoff="fixed(1)",
                      options='{"backoff": "fixed(2)"}')  # fmt: skip
    assert "field of its own" in str(twice["options"])


def test_the_times_while_typing_have_the_jitter_and_end_with_the_last_run(
    log_in_as: LogIn,
) -> None:
    client, page = log_in_as("superuser"), url("schedule", "preview")
    given = {"kind": "every", "tz": "UTC", "interval_0": "1", "interval_1": "3600", "name": "s"}
    plain = client.get(page, given).text
    late = client.get(page, {**given, "jitter_0": "30", "jitter_1": "60"}).text
    assert plain.count("<tr") > 4
    assert plain.count(":00:00") >= 4
    assert late.count(":00:00") < plain.count(":00:00")
    two = client.get(page, {**given, "max_runs": "2"}).text
    assert two.count("<tr") == plain.count("<tr") - (MOST_TIMES - 2)
    schedule = simple_schedule("known", max_runs=3)
    Schedule.objects.update(run_count=2)
    own = {**given, "max_runs": "3", "schedule": schedule.pk}
    assert client.get(page, own).text.count("<tr") == plain.count("<tr") - (MOST_TIMES - 1)


def test_the_form_offers_no_task_that_taskqueue_enqueues_itself(log_in_as: LogIn) -> None:
    text = read(log_in_as("superuser"), url("schedule", "add"))
    assert f'<option value="{add.name}"' in text
    assert registry.find("taskqueue.webhooks.deliver") is not None
    assert '<option value="taskqueue.' not in text
