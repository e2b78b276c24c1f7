"""Alerts and their rules over REST."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import AlertRule, Incident
from tests.alerts.steps import look_now, make_rule
from tests.api.conftest import ApiClient
from tests.api.test_foundation import problem
from tests.monitoring.rows import make_worker

pytestmark = pytest.mark.django_db


def test_alerts_are_listed_by_status_and_rule_and_acknowledged(root: ApiClient) -> None:
    make_worker("w1", trouble="no disk")
    make_rule("disks")
    make_rule("lanes", "queue_unserved")
    look_now()
    (shown,) = root.look("alerts/?status=firing&rule=disks").json()["results"]
    assert (shown["rule"], shown["kind"], shown["subject"]) == ("disks", "worker_trouble", "w1")
    assert shown["summary"] == "The worker w1 is in trouble: no disk"
    assert root.look("alerts/?rule=lanes").json()["results"] == []
    assert root.look("alerts/?status=ended").json()["results"] == []
    done = root.act(f"alerts/{shown['id']}/acknowledge/", {"reason": "on it"})
    assert done.status_code == 200
    assert done.json()["acknowledge_reason"] == "on it"
    problem(root.act(f"alerts/{shown['id']}/acknowledge/"), 409, "transition_refused")
    problem(root.look("alerts/0/"), 404, "alert_not_found")
    problem(root.look("alerts/x/"), 404, "alert_not_found")


def test_a_rule_with_several_open_alerts_is_listed_once(root: ApiClient) -> None:
    for name in ("w1", "w2"):
        make_worker(name, trouble="no disk")
    make_rule("disks")
    make_rule("lanes", "queue_unserved")
    look_now()
    listed = root.look("alert-rules/").json()["results"]
    assert [(each["name"], each["firing"]) for each in listed] == [("disks", 2), ("lanes", 0)]
    assert root.look("alert-rules/disks/").json()["firing"] == 2


def test_a_condition_that_is_pending_is_no_alert(root: ApiClient) -> None:
    make_worker("w1", trouble="no disk")
    make_rule("disks", wait=60)
    look_now()
    incident = Incident.objects.get()
    assert root.look("alerts/").json()["results"] == []
    problem(root.look(f"alerts/{incident.pk}/"), 404, "alert_not_found")


def test_a_rule_is_created_changed_silenced_and_deleted(root: ApiClient) -> None:
    body = {"name": "late", "kind": "queue_latency", "threshold": 60, "mail": ["a@example.org"]}
    made = root.act("alert-rules/", body)
    assert made.status_code == 201
    assert made["Location"].endswith("/alert-rules/late/")
    assert (made.json()["threshold"], made.json()["repeat"]) == (60, 14400)
    problem(root.act("alert-rules/", body), 409, "alert_rule_exists")
    changed = root.ask("PATCH", "alert-rules/late/", {"threshold": None, "wait": 30})
    assert (changed.json()["threshold"], changed.json()["wait"]) == (300, 30)
    silenced = root.act("alert-rules/late/silence/", {"until": 300, "reason": "deploy"})
    assert silenced.json()["silence_reason"] == "deploy"
    assert root.act("alert-rules/late/unsilence/").json()["silenced_until"] is None
    problem(root.act("alert-rules/late/unsilence/"), 409, "transition_refused")
    assert root.act("alert-rules/late/test/").status_code == 202
    assert root.ask("DELETE", "alert-rules/late/").status_code == 204
    problem(root.look("alert-rules/late/"), 404, "alert_rule_not_found")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "x", "kind": "late"},
        {"name": "a/b", "kind": "doctor"},
        {"name": "", "kind": "doctor"},
        {"name": "x", "kind": "doctor", "threshold": 3},
        {"name": "x", "kind": "doctor", "mail": ["ops"]},
        {"name": "x", "kind": "doctor", "mail": ["a@b.org\r\nBcc: eve@b.org"]},
        {"name": "x", "kind": "doctor", "wait": -1},
        {"name": "x", "kind": "heartbeat"},
        {"name": "x", "kind": "doctor", "colour": "red"},
        {"name": "x", "kind": "queue_depth", "scope": "worker", "pattern": "w*"},
    ],
)
def test_a_rule_that_cannot_work_is_refused(root: ApiClient, body: dict[str, Any]) -> None:
    assert root.act("alert-rules/", body).status_code == 422
    assert not AlertRule.objects.exists()


def test_addresses_are_for_those_who_manage_alerts(root: ApiClient, member: Any) -> None:
    make_rule("disks", mail=["canary@example.org"])
    make_rule("beat", "heartbeat", url="https://watcher.example/canary", mail=[])
    assert "canary" not in member("view_alertrule").look("alert-rules/").content.decode()
    assert root.look("alert-rules/").content.decode().count("canary") == 2
