"""Forged requests and odd rows never break a page of schedules."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client, override_settings

from taskqueue import Every, schedules
from taskqueue.models import Audit, Occurrence, Schedule
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import messages_of, simple_schedule
from tests.admin.test_admin import read, url
from tests.admin.test_schedules_acts import LIST, chosen, press

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
NUL, CLEAN = "a\0b", "a\ufffdb"
HUGE = ("9" * 19, "9" * 25, "9" * 5000)


# Texts that no database holds


@pytest.mark.parametrize("verb", ["pause", "run_now"])
def test_a_reason_with_a_nul_is_kept_without_it_by_a_button(verb: str, log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    press(client, schedule, verb, reason=NUL)
    assert Audit.objects.latest("id").reason == CLEAN
    assert LogEntry.objects.get().change_message.endswith(f"({CLEAN})")


@pytest.mark.parametrize("address", ["page", "list"])
def test_a_reason_with_a_nul_is_kept_without_it_by_a_deletion(
    address: str, log_in_as: LogIn
) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    if address == "page":
        page = url("schedule", "delete", schedule.pk)
        assert "deleted" in messages_of(client, page, {"post": "yes", "reason": NUL})
    else:
        asked = client.post(LIST, chosen("delete_chosen", schedule, reason=NUL))
        assert f'value="{CLEAN}"' in asked.content.decode()
        gone = chosen("delete_chosen", schedule, post="yes", reason=NUL)
        assert "deleted" in messages_of(client, LIST, gone)
    assert Audit.objects.get(noun="schedule", verb="delete").reason == CLEAN
    assert LogEntry.objects.get().change_message.endswith(f"({CLEAN})")


def test_a_reason_of_an_action_is_made_fit_and_cut(log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    for reason in (NUL, "x" * 5000):
        assert "paused" in messages_of(client, LIST, chosen("pause", schedule, reason=reason))
    assert {len(line.reason) for line in Audit.objects.filter(noun="schedule", verb="pause")} <= {
        3,
        1000,
    }


# Numbers


def test_ids_of_thousands_are_no_numbers_for_people(log_in_as: LogIn) -> None:
    made = schedules.create(
        "often", "tests.sample.tasks.noop", Every(1_234_567), pause_after_failures=123_456
    )
    Schedule.objects.filter(id=made.id).update(id=123_456)
    schedule, client = Schedule.objects.get(), log_in_as("superuser")
    with override_settings(USE_THOUSAND_SEPARATOR=True, LANGUAGE_CODE="de"):
        for page in ("change", "edit"):
            numbers = re.findall(r'(?:value|href|action)="([^"]*\d[^"]*)"', read_page(client, page))
            assert not [each for each in numbers if re.search(r"\d\.\d\d\d(?!\d)", each)], numbers
        page = client.post(LIST, chosen("delete_chosen", schedule)).content.decode()
        keys = re.findall(r'name="_selected_action" value="([^"]*)"', page)
        assert keys == ["123456"]
        given = {"action": "delete_chosen", "_selected_action": keys, "post": "yes"}
        assert "Schedule often deleted" in messages_of(client, LIST, given)
    assert not Schedule.objects.exists()


def read_page(client: Client, page: str) -> str:
    return read(client, url("schedule", page, 123_456))


@pytest.mark.parametrize("number", [*HUGE, "٩٩٩٩٩٩", "-1", "", "1.5", "x", "1\0"])
@pytest.mark.parametrize("status", ["", "ended", "waiting"])
def test_a_filter_by_the_id_of_no_schedule_finds_nothing(
    number: str, status: str, log_in_as: LogIn
) -> None:
    schedule = simple_schedule()
    Occurrence.objects.create(
        schedule=schedule, nominal_at=schedule.created_at, status=status or "ended"
    )
    filters = {"schedule__id__exact": number} | ({"status": status} if status else {})
    answer = log_in_as("viewer").get(url("occurrence", "changelist"), filters)
    if answer.status_code == 200:
        assert answer.context["cl"].result_count == 0
    else:
        assert (answer.status_code, answer.headers["Location"][-4:]) == (302, "?e=1")


@pytest.mark.parametrize("model", ["schedule", "occurrence"])
def test_no_address_of_a_list_breaks_it(model: str, log_in_as: LogIn) -> None:
    simple_schedule()
    client = log_in_as("superuser")
    for name in ("source__exact", "state", "status", "schedule__id__exact", "q", "p", "o", "e"):
        for value in (NUL, *HUGE, "-1", "٣", "1e5", "%"):
            answer = client.get(url(model, "changelist"), {name: value})
            assert answer.status_code in (200, 302, 400), (name, value)
    for key in HUGE:
        for page in ("change", "delete", "history"):
            assert client.get(f"/admin/taskqueue/{model}/{key}/{page}/").status_code < 500


@pytest.mark.parametrize("key", [*HUGE, "x", "", NUL, "-1", "1.5", "٣", "1,000"])
@pytest.mark.parametrize("action", ["pause", "delete_chosen", "run_now"])
def test_chosen_rows_that_cannot_be_are_passed_over(
    key: str, action: str, log_in_as: LogIn
) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    given = {"action": action, "_selected_action": [key], "post": "yes"}
    assert client.post(LIST, given, follow=True).status_code == 200
    assert Audit.objects.count() == 1
    given["_selected_action"] = [key, str(schedule.pk)]
    assert schedule.name in messages_of(client, LIST, given)
    assert Audit.objects.count() == 2


@pytest.mark.parametrize("index", ["x", "-9", "9" * 30, "9" * 5000])
def test_an_action_at_no_place_does_nothing(index: str, log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    given = chosen("pause", schedule) | {"index": index, "select_across": index}
    assert client.post(LIST, given, follow=True).status_code == 200


# Rules that fail


def test_a_rule_that_fails_when_it_is_read_keeps_nobody_from_the_others(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, other = simple_schedule("odd"), simple_schedule("other")
    Schedule.objects.filter(name="odd").update(rule=Every(hours=7).as_json())
    client = log_in_as("superuser")
    break_rules(monkeypatch)
    assert "other" in read(client, LIST)
    for page in ("change", "edit", "delete"):
        assert "odd" in read(client, url("schedule", page, odd.pk))
    told = messages_of(client, LIST, chosen("pause", odd, other))
    assert "Schedule other paused" in told
    assert "odd" in told
    assert "Run of schedule other requested" in messages_of(
        client, LIST, chosen("run_now", odd, other)
    )


def break_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rules of seven hours fail as none should."""
    times = Every._times

    def fail(rule: Every, after: datetime) -> Any:
        if rule.interval.total_seconds() == 7 * 3600:
            raise ZeroDivisionError("odd")
        return times(rule, after)

    monkeypatch.setattr(Every, "_times", fail)


@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "every", "interval": -1},
        {"kind": "cron", "expression": "61 * * * *", "tz": "No/Where"},
        {"kind": "once", "at": "2099-01-01T00:00:00"},
        {"kind": "daily_window", "first": "x", "last": "y", "every": 0},
        {"kind": ["cron"]},
        [],
    ],
)
def test_a_rule_that_makes_no_sense_can_be_seen_and_replaced(rule: Any, log_in_as: LogIn) -> None:
    schedule, client = simple_schedule(), log_in_as("superuser")
    Schedule.objects.update(rule=rule)
    for page in ("change", "edit"):
        assert schedule.name in read(client, url("schedule", page, schedule.pk))
    assert "paused" in press(client, schedule, "pause")
    schedules.edit(schedule.name, rule=Every(hours=2))
    assert schedules.get(schedule.name).rule["interval"] == 7200
