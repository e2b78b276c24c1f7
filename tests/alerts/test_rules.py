"""Rules that code, settings and people make, and the events of their alerts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from taskqueue import Notify, alerts, task
from taskqueue.core.alerts import KINDS
from taskqueue.declarations.definition import registry
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.alerts.declaring import notify_name, sync_rules
from taskqueue.engine.events.subscribing import subscribe
from taskqueue.exceptions import (
    AlertDoesNotExist,
    AlertRuleDoesNotExist,
    AlertRuleExists,
    InvalidAlertRule,
    InvalidTask,
    TransitionRefused,
)
from taskqueue.models import (
    AlertRule,
    Audit,
    Event,
    Incident,
    Worker,
)
from taskqueue.models.event import Subscriber
from tests.alerts.steps import look_now, mails, make_rule, open_incidents, pass_time
from tests.monitoring.rows import make_task, make_worker

pytestmark = pytest.mark.django_db


@pytest.fixture
def definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget afterwards what a test declares."""
    registry.all()
    monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))


def declared() -> dict[str, AlertRule]:
    return {row.name: row for row in AlertRule.objects.filter(source="code", removed_at=None)}


def test_without_the_setting_and_without_notify_there_are_no_rules() -> None:
    assert sync_rules() == []
    assert not AlertRule.objects.exists()


def test_the_setting_makes_a_rule_of_each_default_kind(settings: Any) -> None:
    settings.TASKQUEUE = {
        "ALERTS": {
            "mail": ["ops@example.org"], "heartbeat": "https://watcher.example/ping",
            "leave_out": ["wedged"],
        }
    }  # fmt: skip
    assert sync_rules() == []
    kinds = {kind for kind, details in KINDS.items() if details.is_default} - {"wedged"}
    assert declared().keys() == {f"default {kind}" for kind in kinds} | {"default heartbeat"}
    rule = declared()["default doctor"]
    assert (rule.channels, rule.next_at is not None) == ({"mail": ["ops@example.org"]}, True)
    before = Audit.objects.count()
    sync_rules()
    assert Audit.objects.count() == before  # Nothing has changed.


def test_rules_removed_from_the_setting_are_deleted_and_their_alerts_end(settings: Any) -> None:
    settings.TASKQUEUE = {"ALERTS": {"mail": ["ops@example.org"]}}
    sync_rules()
    make_worker("w1", trouble="no disk")
    look_now()
    assert open_incidents() == [("w1", "firing")]
    settings.TASKQUEUE = {"ALERTS": {"leave_out": ["worker_trouble"]}}
    sync_rules()
    assert "default worker_trouble" not in declared()
    assert open_incidents() == []
    assert declared()["default doctor"].channels == {}
    settings.TASKQUEUE = {}
    sync_rules()
    assert declared() == {}
    assert not AlertRule.objects.filter(next_at__isnull=False).exists()


def test_addresses_that_are_none_are_refused_and_the_other_rules_stay(settings: Any) -> None:
    settings.TASKQUEUE = {"ALERTS": {"heartbeat": "nowhere"}}
    (refusal,) = sync_rules()
    assert refusal.startswith("default heartbeat: A heartbeat needs a url")
    assert "default doctor" in declared()


@pytest.mark.usefixtures("definitions")
def test_notify_of_a_definition_is_a_rule_about_its_failures() -> None:
    @task(name="shop.charge", notify=["ann@example.org"])
    def charge() -> None: ...

    @task(name="shop.crawl", notify=Notify(endpoints=["3"], threshold=5, window=timedelta(hours=1)))
    def crawl() -> None: ...

    sync_rules()
    one, many = declared()[notify_name("shop.charge")], declared()[notify_name("shop.crawl")]
    assert (one.kind, one.scope, one.pattern, one.threshold) == (
        "failure",
        "name",
        "shop.charge",
        1,
    )
    assert one.channels == {"mail": ["ann@example.org"]}
    assert (many.threshold, many.window_seconds, many.channels) == (5, 3600, {"endpoints": ["3"]})
    make_task("failed", name="shop.charge")
    make_task("failed", name="shop.crawl")
    look_now()
    assert open_incidents() == [("shop.charge", "firing")]
    with pytest.raises(TransitionRefused, match="declared in code"):
        alerts.edit(one.name, threshold=3)
    with pytest.raises(TransitionRefused, match="declared in code"):
        alerts.delete(one.name)
    alerts.silence(one.name)


def test_the_name_of_a_very_long_definition_still_makes_a_name() -> None:
    long, longer = "a" * 255, "a" * 254 + "b"
    assert len(notify_name(long)) == len(notify_name(longer)) == 255
    assert notify_name(long) != notify_name(longer)


def test_rules_of_people_are_audited_and_have_names_of_their_own() -> None:
    alerts.create("late", kind="queue_latency", threshold=60, by="ann", reason="slow mails")
    with pytest.raises(AlertRuleExists):
        alerts.create("late", kind="doctor")
    alerts.edit("late", threshold=90, by="bob")
    alerts.silence("late", until=timedelta(minutes=5), by="ann")
    alerts.unsilence("late", by="ann")
    with pytest.raises(TransitionRefused, match="is not silenced"):
        alerts.unsilence("late")
    alerts.delete("late", by="ann")
    with pytest.raises(AlertRuleDoesNotExist):
        alerts.edit("late", threshold=9)
    entries = Audit.objects.filter(noun="alert_rule").order_by("id").values_list("verb", "actor")
    assert list(entries) == [
        ("create", "ann"), ("edit", "bob"), ("silence", "ann"), ("unsilence", "ann"),
        ("delete", "ann"),
    ]  # fmt: skip


def test_whoever_subscribes_hears_of_a_raise_and_of_a_clear_once_and_of_nothing_secret() -> None:
    subscribe(connection, Subscriber.STREAM, "test", EventFilter.of("alert.*"))
    make_worker("w1", trouble="canary-7f3a")
    make_rule("disks", mail=[], repeat=300)
    for _ in range(3):
        look_now()
        pass_time(400)
    Worker.objects.update(trouble="")
    look_now()
    look_now()
    events = list(Event.objects.order_by("id"))
    assert [event.kind for event in events] == ["alert.raised", "alert.cleared"]
    incident = Incident.objects.get()
    for event in events:
        assert event.name == "disks"
        assert event.details["alert"] == incident.pk
        assert event.details["subject"] == "w1"
        assert "canary" not in str(event.details)


def test_events_of_a_silenced_rule_are_written_when_they_happen_and_once() -> None:
    subscribe(connection, Subscriber.HANDLER, "h", EventFilter.of("alert.*"))
    make_worker("w1", trouble="no disk")
    make_rule()
    alerts.silence("rule", until=timedelta(hours=1))

    def kinds() -> list[str]:
        return list(Event.objects.order_by("id").values_list("kind", flat=True))

    look_now()
    look_now()
    assert kinds() == ["alert.raised"]
    pass_time(3601)
    look_now()
    assert (kinds(), mails()) == (["alert.raised"], [["raised"]])
    alerts.silence("rule", until=timedelta(hours=1))
    Worker.objects.update(trouble="")
    look_now()
    look_now()
    assert kinds() == ["alert.raised", "alert.cleared"]
    pass_time(3601)
    look_now()
    assert kinds() == ["alert.raised", "alert.cleared"]
    assert mails() == [["raised"], ["cleared"]]


def test_an_alert_that_ends_because_its_rule_is_disabled_is_cleared_in_the_feed() -> None:
    subscribe(connection, Subscriber.HANDLER, "h", EventFilter.of("alert.*"))
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    alerts.edit("rule", enabled=False)
    assert [event.kind for event in Event.objects.order_by("id")] == [
        "alert.raised", "alert.cleared",
    ]  # fmt: skip


def test_a_rule_of_people_names_endpoints_that_exist() -> None:
    with pytest.raises(InvalidAlertRule, match="no webhook endpoint 7"):
        make_rule(endpoints=["7"])
    make_rule()
    with pytest.raises(InvalidAlertRule, match="no webhook endpoint 7"):
        alerts.edit("rule", endpoints=["7"])


@pytest.mark.parametrize("nobody", [[], (), {"mail": []}])
def test_notify_names_somebody(nobody: Any) -> None:
    with pytest.raises(InvalidTask, match="notify must name somebody to tell"):
        Notify(**nobody) if isinstance(nobody, dict) else task(notify=nobody)(lambda: None)


def test_while_nobody_subscribes_no_event_is_written() -> None:
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    assert not Event.objects.exists()


URL = "https://watcher.example/ping"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "queue_latency", "threshold": 10**400}, "from 0 to 1,000,000,000, not 1000"),
        ({"kind": "queue_latency", "threshold": 10**5000}, "not this int"),
        ({"kind": "queue_depth", "threshold": 1_000_001}, "from 1 to 1,000,000, not 1000001"),
        ({"kind": "doctor", "enabled": "false"}, "enabled must be True or False, not 'false'"),
        ({"kind": "heartbeat", "url": URL, "mail": ["a@example.org"]}, "only calls its url"),
        ({"kind": "heartbeat", "url": URL, "endpoints": ["1"]}, "only calls its url"),
        ({"kind": 10**5000}, "There is no kind this int"),
    ],
    ids=["large", "larger", "deep", "enabled", "mail", "endpoints", "kind"],
)
def test_a_rule_that_cannot_be_is_refused_with_the_reason(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidAlertRule, match=said):
        alerts.create("odd", **fields)
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize("name", [" ", " late", "late\u202e", "a/b", "", "a\nb", "x" * 500, 5])
def test_the_name_of_a_rule_is_one_that_people_see(name: Any) -> None:
    with pytest.raises(InvalidAlertRule, match="printable characters without '/'"):
        alerts.create(name, kind="doctor")


@pytest.mark.parametrize(
    "alert",
    ["0" * 30 + "9" * 5000, 10**5000, 2**63, "x", "", 0, True],
    ids=["text", "number", "large", "word", "nothing", "zero", "truth"],
)
def test_an_unknown_alert_is_refused_with_the_command_that_lists_alerts(alert: Any) -> None:
    with pytest.raises(AlertDoesNotExist, match="taskqueue alerts list"):
        alerts.acknowledge(alert)


def test_a_threshold_that_is_a_time_may_be_a_timedelta() -> None:
    alerts.create("rule", kind="queue_latency", threshold=timedelta(minutes=5))
    assert AlertRule.objects.get().threshold == 300
    with pytest.raises(InvalidAlertRule, match="is a number, not a duration"):
        alerts.create("share", kind="failure_rate", threshold=timedelta(minutes=5))


def test_a_threshold_ends_with_the_kind_that_it_belongs_to() -> None:
    alerts.create("rule", kind="queue_latency", threshold=60)
    alerts.edit("rule", kind="queue_growing")
    row = AlertRule.objects.get()
    assert (row.kind, row.threshold) == ("queue_growing", None)
    with pytest.raises(InvalidAlertRule, match="has no threshold"):
        alerts.edit("rule", threshold=5)
