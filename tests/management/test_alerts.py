"""Alerts and their rules on the command line."""

from __future__ import annotations

import pytest

from taskqueue.models import AlertRule, Incident, Task, Worker
from tests.alerts.steps import look_now, make_rule
from tests.management.test_taskqueue import refused, run, run_json
from tests.monitoring.rows import make_worker

pytestmark = pytest.mark.django_db


def test_firing_alerts_are_listed_and_acknowledged_by_id() -> None:
    make_worker("w1", trouble="no disk")
    make_rule("disks")
    assert run_json("alerts") == []
    look_now()
    (listed,) = run_json("alerts", "list")
    assert (listed["rule"], listed["subject"], listed["status"]) == ("disks", "w1", "firing")
    assert "The worker w1 is in trouble: no disk" in run("alerts")
    said = run("alerts", "ack", str(listed["id"]), "--by", "ann", "--reason", "on it")
    assert said.strip() == f"Alert {listed['id']} acknowledged."
    assert run_json("alerts")[0]["acknowledged_by"] == "ann"
    code, why = refused("alerts", "ack", str(listed["id"]))
    assert (code, "acknowledged already, by ann" in why) == (1, True)
    Worker.objects.update(trouble="")
    look_now()
    look_now()
    assert run_json("alerts") == []
    assert run_json("alerts", "list", "--all")[0]["status"] == "ended"
    code, why = refused("alerts", "ack", "999")
    assert (code, "There is no alert 999. manage.py taskqueue alerts list" in why) == (1, True)


def test_rules_are_created_shown_changed_silenced_tested_and_deleted() -> None:
    made = run_json(
        "alerts", "create", "late", "--kind", "queue_latency", "--scope", "queue",
        "--pattern", "mail*", "--threshold", "600", "--mail", "ann@example.org", "bob@example.org",
    )  # fmt: skip
    assert (made["threshold"], made["mail"]) == (600, ["ann@example.org", "bob@example.org"])
    assert (made["wait"], made["repeat"]) == (0, 14400)
    assert run_json("alerts", "edit", "late", "--wait", "2m")["wait"] == 120
    assert run_json("alerts", "edit", "late", "--disable")["is_enabled"] is False
    assert run_json("alerts", "edit", "late", "--enable")["is_enabled"] is True
    silenced = run_json("alerts", "silence", "late", "--in", "2h", "--by", "ann")
    assert silenced["silenced_by"] == "ann"
    assert run_json("alerts", "unsilence", "late")["silenced_until"] is None
    assert run_json("alerts", "silence", "late", "--for", "1h")["silenced_until"]
    run("alerts", "test", "late")
    assert Task.objects.count() == 1
    assert [rule["name"] for rule in run_json("alerts", "rules")] == ["late"]
    assert run_json("alerts", "show", "late")["alerts"] == []
    assert run("alerts", "delete", "late").strip() == "Alert rule late deleted."
    assert not AlertRule.objects.exists()


def test_errors_are_reported_with_their_remedy() -> None:
    make_rule("late", "queue_latency", mail=[])
    code, why = refused("alerts", "silence", "lat")
    assert (code, "There is no alert rule 'lat'. Did you mean 'late'?" in why) == (1, True)
    code, why = refused("alerts", "create", "x", "--kind", "doctor", "--threshold", "3")
    assert (code, "has no threshold" in why) == (2, True)
    code, why = refused("alerts", "test", "late")
    assert (code, "has no channel to test" in why) == (1, True)
    assert not Incident.objects.exists()


def test_a_rule_with_a_threshold_can_change_to_a_kind_without_one() -> None:
    make_rule("late", "queue_latency", threshold=60)
    changed = run_json("alerts", "edit", "late", "--kind", "queue_unserved")
    assert (changed["kind"], changed["threshold"]) == ("queue_unserved", None)


@pytest.mark.parametrize(
    ("text", "seconds"), [("5m", 300), ("1.5h", 5400), ("90", 90), ("90s", 90), ("0.5", 0.5)]
)
def test_a_threshold_that_is_a_time_is_written_like_any_duration(text: str, seconds: float) -> None:
    made = run_json("alerts", "create", "late", "--kind", "queue_latency", "--threshold", text)
    assert made["threshold"] == seconds
    assert run_json("alerts", "edit", "late", "--threshold", "2m")["threshold"] == 120


def test_a_threshold_that_is_no_time_is_a_number() -> None:
    code, why = refused("alerts", "create", "x", "--kind", "failure_rate", "--threshold", "5m")
    assert (code, "is a number, not a duration" in why) == (2, True)
    _, why = refused("alerts", "create", "x", "--kind", "queue_depth", "--threshold", "many")
    assert "neither a number nor a duration such as 90s" in why
