"""Buttons and actions of schedules call the verbs; users who may only view can do nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from taskqueue import schedules
from taskqueue.models import Audit, Occurrence, Schedule, Task
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.schedule_rows import (
    declared_schedule,
    filled,
    messages_of,
    simple_schedule,
)
from tests.admin.test_admin import read, url

pytestmark = pytest.mark.django_db
LIST = "/admin/taskqueue/schedule/"
ACTIONS = ("run_now", "pause", "resume", "delete_chosen")


def press(client: Client, schedule: Schedule, verb: str, **more: str) -> str:
    """Press a button of the page; what is told."""
    return messages_of(client, url("schedule", "act", schedule.pk), {"verb": verb, **more})


def chosen(action: str, *rows: Schedule, **more: str) -> dict[str, Any]:
    """What the list posts for an action."""
    keys = [str(each.pk) for each in rows]
    return {"action": action, "_selected_action": keys, "index": "0", **more}


def state() -> Any:
    """All that an act could change."""
    return (
        list(Schedule.objects.order_by("id").values()), Occurrence.objects.count(),
        Task.objects.count(), list(Audit.objects.order_by("id").values()),
    )  # fmt: skip


@pytest.mark.parametrize("role", ["anonymous", "user", "staff", "viewer"])
def test_who_may_not_edit_changes_nothing_by_any_address(role: str, log_in_as: LogIn) -> None:
    schedule = simple_schedule()
    schedules.pause(schedule.name)
    before, client = state(), log_in_as(role)
    for page in ("edit", "act", "delete", "change"):
        for given in (filled(), {"verb": "run_now"}, {"verb": "resume"}, {"post": "yes"}, {}):
            status = client.post(url("schedule", page, schedule.pk), given).status_code
            assert status == (302 if role in ("anonymous", "user") else 403), (page, given)
    for page in ("edit", "act", "delete"):
        assert client.get(url("schedule", page, schedule.pk)).status_code in (302, 403)
    for method in ("get", "post"):
        assert getattr(client, method)(url("schedule", "add"), filled()).status_code in (302, 403)
    for action in (*ACTIONS, "delete_selected"):
        client.post(LIST, chosen(action, schedule, post="yes", reason="x"))
    client.post(LIST, {"form-0-id": schedule.pk, "_save": "Save", "_selected_action": schedule.pk})
    assert state() == before
    if role == "viewer":
        page_text = read(client, url("schedule", "change", schedule.pk))
        assert "taskqueue-act" not in page_text
        assert 'name="action"' not in read(client, LIST)


@pytest.mark.parametrize("role", ["viewer", "superuser"])
def test_occurrences_are_changed_by_nobody(role: str, log_in_as: LogIn) -> None:
    schedule = simple_schedule()
    occurrence = schedules.run_now(schedule.name)
    client = log_in_as(role)
    key = occurrence.pk
    for address in (
        url("occurrence", "add"), url("occurrence", "delete", key),
        url("occurrence", "change", key),
    ):  # fmt: skip
        assert client.post(address, {"status": "ended", "post": "yes"}).status_code == 403
    gone = chosen("delete_selected", schedule, post="yes") | {"_selected_action": [str(key)]}
    client.post(url("occurrence", "changelist"), gone)
    assert Occurrence.objects.get().status == "enqueued"


def test_who_may_edit_schedules_and_enqueue_sees_them_and_acts(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("staff", "edit_schedules", "enqueue")
    assert "paused" in press(client, schedule, "pause", reason=EVIL)
    row = schedules.get(schedule.name)
    assert (row.paused_by, row.pause_reason) == ("user", EVIL)
    page = read(client, url("schedule", "change", schedule.pk))
    assert "paused by user" in page
    assert EVIL not in page
    assert "Run of schedule" in press(client, schedule, "run_now")
    assert Occurrence.objects.get().requested_by == "user"
    assert "resumed" in press(client, schedule, "resume")
    assert schedules.get(schedule.name).paused_at is None
    verbs = Audit.objects.filter(actor="user").order_by("id").values_list("verb", flat=True)
    assert list(verbs) == ["pause", "run_now", "resume"]
    assert LogEntry.objects.filter(object_id=str(schedule.pk)).count() == 3


def test_a_refused_action_on_a_schedule_shows_its_reason(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    assert "is not paused" in press(client, schedule, "resume")
    press(client, schedule, "run_now")
    assert "has not ended" in press(client, schedule, "run_now")
    assert "nothing called" in press(client, schedule, "delete")
    assert "nothing called" in press(client, schedule, EVIL)
    assert Task.objects.count() == 1
    schedules.delete(schedule.name)
    assert "no such schedule" in press(client, schedule, "pause")
    assert "no such schedule" in messages_of(client, url("schedule", "delete", schedule.pk), {})


def test_buttons_need_a_post_with_the_token(log_in_as: LogIn) -> None:
    schedule, before = simple_schedule(), state()
    client = log_in_as("superuser")
    before = state()
    address = url("schedule", "act", schedule.pk)
    assert client.get(address, {"verb": "pause"}).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    for page in ("act", "delete", "edit"):
        assert strict.post(url("schedule", page, schedule.pk), {"verb": "pause"}).status_code == 403
    assert strict.post(LIST, chosen("pause", schedule)).status_code == 403
    assert strict.post(url("schedule", "add"), filled()).status_code == 403
    assert state() == before


def test_actions_of_the_list_are_done_to_each_that_was_chosen(log_in_as: LogIn) -> None:
    one, two, other = (simple_schedule(name) for name in ("one", "two", "other"))
    client = log_in_as("superuser")
    messages_of(client, LIST, chosen("pause", one, two, reason="a quiet night"))
    assert set(Schedule.objects.filter(paused_at=None)) == {other}
    assert schedules.get("one").pause_reason == "a quiet night"
    told = messages_of(client, LIST, chosen("resume", one, other))
    assert "Schedule one resumed" in told
    assert "'other' is not paused" in told
    messages_of(client, LIST, chosen("run_now", one, two))
    assert set(Occurrence.objects.values_list("schedule__name", flat=True)) == {"one", "two"}


def test_the_list_asks_before_it_deletes(log_in_as: LogIn) -> None:
    one, two, declared = simple_schedule("one"), simple_schedule("two"), declared_schedule()
    schedules.run_now("one")
    client = log_in_as("superuser")
    page = client.post(LIST, chosen("delete_chosen", one, declared, reason="old"))
    assert page.status_code == 200
    assert "is kept: it is declared in code" in page.content.decode()
    assert b'value="old"' in page.content
    assert Schedule.objects.count() == 3
    given = chosen("delete_chosen", one, declared, post="yes", reason="old")
    del given["index"]
    told = messages_of(client, LIST, given)
    assert "Schedule one deleted" in told
    assert "is declared in code" in told
    assert set(Schedule.objects.all()) == {two, declared}
    assert Audit.objects.get(noun="schedule", verb="delete").reason == "old"
    assert Task.objects.count() == 1


def test_a_page_asks_before_it_deletes(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    address = url("schedule", "delete", schedule.pk)
    assert schedule.name in read(client, address)
    assert Schedule.objects.exists()
    assert "deleted" in messages_of(client, address, {"post": "yes", "reason": "old"})
    assert not Schedule.objects.exists()


def test_a_declared_schedule_can_be_deleted_only_after_code_has_removed_it(
    log_in_as: LogIn,
) -> None:
    schedule, client = declared_schedule(), log_in_as("superuser")
    address = url("schedule", "delete", schedule.pk)
    assert "taskqueue-danger" not in read(client, address)
    assert "declared in code" in messages_of(client, address, {"post": "yes"})
    Schedule.objects.update(removed_at=schedule.created_at)
    assert "taskqueue-danger" in read(client, address)
    assert "deleted" in messages_of(client, address, {"post": "yes"})


def test_a_declared_schedule_can_be_paused_run_and_resumed(log_in_as: LogIn) -> None:
    schedule, client = declared_schedule(), log_in_as("superuser")
    for verb, done in (("pause", "paused"), ("run_now", "requested"), ("resume", "resumed")):
        told = press(client, schedule, verb)
        assert schedule.name in told
        assert done in told


def test_who_may_not_enqueue_is_offered_what_makes_no_task(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("staff", "edit_schedules")
    page = read(client, url("schedule", "change", schedule.pk))
    assert 'value="pause"' in page
    schedules.pause(schedule.name)
    page += read(client, url("schedule", "change", schedule.pk))
    assert url("schedule", "delete", schedule.pk) in page
    for offered in ('value="run_now"', 'value="resume"', "/edit/"):
        assert offered not in page, offered
    listed = read(client, url("schedule", "changelist"))
    assert "Pause</option>" in listed
    assert "Run now</option>" not in listed
    assert url("schedule", "add") not in listed


def test_a_schedule_that_paused_itself_says_why_and_can_only_be_resumed(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(pause_after_failures=2), log_in_as("superuser")
    page = read(client, url("schedule", "change", schedule.pk))
    assert 'value="pause"' in page
    assert 'value="resume"' not in page
    assert "taskqueue-times" in page
    Schedule.objects.update(
        paused_at=timezone.now(), failures_in_row=2, pause_reason="2 runs failed in a row."
    )
    page = read(client, url("schedule", "change", schedule.pk))
    assert 'value="pause"' not in page
    assert 'value="resume"' in page
    assert "taskqueue-times" not in page
    assert "None until the schedule is resumed." in page
    assert "2 runs failed in a row." in page
    assert "paused after failures" in page
    assert f"{schedule.next_at:%Y-%m-%d %H}" not in read(client, url("schedule", "changelist"))
