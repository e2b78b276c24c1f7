"""Alerts and their rules in the admin: the banner, the lists, the pages and their forms."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import AlertRule, Incident, Task, Worker
from tests.admin.conftest import LogIn
from tests.admin.test_admin import read, url
from tests.alerts.steps import look_now, make_rule
from tests.monitoring.rows import MINUTE, ago, make_schedule, make_task, make_worker

pytestmark = pytest.mark.django_db
SENTENCE = "The worker w1 is in trouble: no disk"


def test_the_dashboard_shows_what_fires_until_it_is_over(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    make_worker("w1", trouble="no disk")
    make_rule("disks", mail=[])
    banner = f'">{SENTENCE}</a>'
    assert banner not in read(client, url("dashboard", "changelist"))
    look_now()
    assert banner in read(client, url("dashboard", "changelist"))
    Worker.objects.update(trouble="")
    look_now()
    look_now()
    assert banner not in read(client, url("dashboard", "changelist"))


def test_an_alert_is_acknowledged_from_the_list_with_a_reason(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    make_worker("w1", trouble="no disk")
    make_rule("disks")
    look_now()
    incident = Incident.objects.get()
    page = read(client, url("incident", "changelist"))
    assert SENTENCE in page
    assert url("incident", "act", incident.pk) in page
    client.post(url("incident", "act", incident.pk), {"reason": "on it"})
    incident.refresh_from_db()
    assert (incident.acknowledged_by, incident.acknowledge_reason) == ("user", "on it")
    shown = read(client, url("incident", "change", incident.pk))
    assert "on it" in shown
    assert url("incident", "act", incident.pk) not in shown
    answer = client.post(url("incident", "act", incident.pk), follow=True)
    assert "acknowledged already" in answer.content.decode()
    assert "on it" in read(client, url("incident", "history", incident.pk))


def test_an_alert_and_its_remedy_are_translated(log_in_as: LogIn, settings: Any) -> None:
    settings.LANGUAGE_CODE = "zh-hans"
    client = log_in_as("superuser")
    make_worker("w1", trouble="no disk")
    rule = make_rule("disks", mail=[])
    look_now()
    incident = Incident.objects.get()
    assert incident.summary == SENTENCE
    places = (
        url("dashboard", "changelist"), url("incident", "changelist"),
        url("incident", "change", incident.pk), url("alertrule", "change", rule.pk),
    )  # fmt: skip
    for address in places:
        page = read(client, address)
        assert SENTENCE not in page, address
        assert "工作进程 w1 遇到问题\uff1ano disk" in page, address
    assert "Fix what it says" not in read(client, url("incident", "change", incident.pk))
    Incident.objects.update(words={})
    assert SENTENCE in read(client, url("incident", "change", incident.pk))


def test_a_duration_and_the_remedy_of_an_alert_alone_are_in_the_language_of_the_reader(
    log_in_as: LogIn, settings: Any
) -> None:
    settings.LANGUAGE_CODE = "zh-hans"
    client = log_in_as("superuser")
    make_worker()
    make_task(run_after=ago(6 * MINUTE))
    make_schedule("late", next_at=ago(7 * MINUTE))
    make_rule("latency", "queue_latency", mail=[])
    make_rule("missed", "schedule_missed", mail=[])
    look_now()
    told = {
        "latency": ("已等待 6 分钟", "manage.py taskqueue why ID"),
        "missed": ("已逾期 7 分钟", "manage.py taskqueue schedules show late\uff1b"),
    }
    for rule, (sentence, remedy) in told.items():
        incident = Incident.objects.get(rule__name=rule)
        assert " min" in incident.summary
        page = read(client, url("incident", "change", incident.pk))
        assert sentence in page, rule
        assert remedy in page, rule
        assert incident.remedy not in page, rule


def test_a_rule_is_made_changed_silenced_tested_and_deleted_by_forms(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    filled = {
        "name": "late", "kind": "queue_latency", "scope": "queue", "pattern": "mail*",
        "threshold": "600", "mail": "ann@example.org, bob@example.org", "enabled": "on",
    }  # fmt: skip
    client.post(url("alertrule", "new"), filled)
    rule = AlertRule.objects.get()
    assert rule.channels == {"mail": ["ann@example.org", "bob@example.org"]}
    assert (rule.threshold, rule.created_by) == (600, "user")
    page = read(client, url("alertrule", "edit", rule.pk))
    assert 'value="mail*"' in page
    client.post(url("alertrule", "edit", rule.pk), {**filled, "wait": "30", "mail": ""})
    rule.refresh_from_db()
    assert (rule.for_seconds, rule.channels) == (30, {})
    act = url("alertrule", "act", rule.pk)
    client.post(act, {"verb": "silence", "minutes": "5", "reason": "deploy"})
    assert "deploy" in read(client, url("alertrule", "change", rule.pk))
    client.post(act, {"verb": "unsilence"})
    assert "no channel to test" in client.post(act, {"verb": "test"}, follow=True).content.decode()
    assert "is deleted with its alerts" in client.post(act, {"verb": "delete"}).content.decode()
    assert AlertRule.objects.exists()
    client.post(act, {"verb": "delete", "confirmed": "1"})
    assert not AlertRule.objects.exists()
    assert not Task.objects.exists()


def test_errors_in_the_form_are_shown_and_nothing_is_saved(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    filled = {"name": "late", "kind": "doctor", "scope": "all", "threshold": "5", "enabled": "on"}
    answer = client.post(url("alertrule", "new"), filled)
    assert "A rule of this kind has no threshold." in answer.content.decode()
    for mistake in ({"wait": "-1"}, {"wait": "2d"}, {"wait": "soon"}, {"threshold": "nan"}):
        answer = client.post(url("alertrule", "new"), {**filled, "threshold": "", **mistake})
        assert answer.status_code == 200, mistake
    assert not AlertRule.objects.exists()


def test_durations_are_typed_as_on_the_command_line(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    filled = {"name": "late", "kind": "queue_latency", "scope": "all", "enabled": "on"}
    times = {"threshold": "5m", "window": "90", "wait": "1.5m", "repeat": "4h"}
    client.post(url("alertrule", "new"), filled | times)
    rule = AlertRule.objects.get()
    assert (rule.threshold, rule.window_seconds, rule.for_seconds) == (300, 90, 90)
    assert rule.repeat_seconds == 4 * 3600

    page = client.get(url("alertrule", "edit", rule.pk)).content.decode()
    for shown in ("5m", "90s", "4h"):
        assert f'value="{shown}"' in page
    rule = make_rule("many", "failure_rate", threshold=0.25)
    assert 'value="0.25"' in client.get(url("alertrule", "edit", rule.pk)).content.decode()


def test_a_form_that_others_have_overtaken_saves_nothing(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    rule = make_rule("late", "queue_latency", threshold=60)
    filled = {"kind": "queue_latency", "scope": "all", "enabled": "on", "threshold": "90"}
    answer = client.post(url("alertrule", "edit", rule.pk), {**filled, "seen": "2020-01-01"})
    assert "has changed since you saw it" in answer.content.decode()
    rule.refresh_from_db()
    assert rule.threshold == 60


@pytest.mark.parametrize("manages", [False, True])
def test_addresses_are_shown_to_those_alone_who_manage_alerts(
    manages: bool, log_in_as: LogIn
) -> None:
    rule = make_rule("beat", "heartbeat", url="https://watcher.example/canary", mail=[])
    other = make_rule("disks", mail=["canary@example.org"])
    also = ["manage_alerts"] if manages else []
    client = log_in_as("staff", "view_alertrule", *also)
    for row in (rule, other):
        assert ("canary" in read(client, url("alertrule", "change", row.pk))) == manages
