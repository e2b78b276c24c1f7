"""Rules that code, settings and people make; events of alerts, heartbeats, the doctor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from django.db import connection

from taskqueue import Notify, alerts, task, webhooks
from taskqueue.alerts.duty import look
from taskqueue.core.alerts import KINDS
from taskqueue.declarations.definition import registry
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.alerts.declaring import notify_name, sync_rules
from taskqueue.engine.alerts.messages import EXAMINATION, HEARTBEAT
from taskqueue.engine.events.numbering import pump
from taskqueue.engine.events.subscribing import subscribe
from taskqueue.exceptions import AlertRuleDoesNotExist, AlertRuleExists, TransitionRefused
from taskqueue.models import (
    AlertRule,
    Audit,
    Delivery,
    Event,
    Incident,
    Subscription,
    Task,
    Worker,
)
from taskqueue.models.event import Subscriber
from taskqueue.monitoring.doctor import examine
from taskqueue.testing import run_due
from tests.alerts.steps import look_now, mails, make_rule, open_incidents, pass_time
from tests.monitoring.rows import HOUR, ago, make_task, make_worker

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


def test_what_the_setting_says_no_more_is_removed_and_its_alerts_end(settings: Any) -> None:
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


def test_while_nobody_subscribes_no_event_is_written() -> None:
    make_worker("w1", trouble="no disk")
    make_rule()
    look_now()
    assert not Event.objects.exists()


@contextmanager
def a_watcher(status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A server that notes the paths it is asked for; its address, and these."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/ping", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_heartbeat_is_called_while_all_is_well_and_no_longer(settings: Any) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": ["127.0.0.1/32"]}
    make_worker()
    with a_watcher() as (url, asked):
        make_rule("beat", "heartbeat", url=url, mail=[])
        make_rule("disks", "worker_trouble")
        assert look_now()
        run_due()
        assert asked == ["/ping"]
        Worker.objects.update(trouble="no disk")
        look_now()
        run_due()
        look_now()
        run_due()
        assert asked == ["/ping"]
    task = Task.objects.filter(name=HEARTBEAT["name"]).get()
    assert (task.status, task.priority, task.return_value) == ("succeeded", 100, "It answered 200.")


def test_a_heartbeat_is_due_every_so_many_seconds() -> None:
    make_worker()
    rule = make_rule("beat", "heartbeat", url="https://watcher.example/", threshold=120, mail=[])
    look_now()
    rule.refresh_from_db()
    assert rule.next_at is not None
    assert rule.evaluated_at is not None
    assert rule.next_at - rule.evaluated_at == timedelta(seconds=120)
    assert not look(connection)


def test_a_heartbeat_goes_to_no_address_that_is_not_public() -> None:
    make_worker()
    with a_watcher() as (url, asked):
        make_rule("beat", "heartbeat", url=url, mail=[])
        look_now()
        run_due()
        assert asked == []
    assert Task.objects.get().status == "failed"


def test_the_doctor_is_asked_hourly_in_a_task_and_more_often_while_it_has_found_something() -> None:
    make_worker()
    make_rule("doctor", "doctor")

    def examinations() -> int:
        return Task.objects.filter(name=EXAMINATION["name"]).count()

    overdue = make_task("scheduled", run_after=ago(HOUR))
    look_now()
    assert (examinations(), open_incidents()) == (1, [])
    AlertRule.objects.update(found=findings_now())
    look_now()
    assert open_incidents() == [("duties", "firing")]
    assert mails() == [["raised"]]
    pass_time(400)
    look_now()
    assert examinations() == 1
    pass_time(200)
    look_now()
    assert examinations() == 2
    Task.objects.filter(id=overdue.id).delete()
    for _ in range(2):
        AlertRule.objects.update(found=findings_now())
        look_now()
    assert open_incidents() == []
    pass_time(300)
    look_now()
    assert mails() == [["raised"], ["cleared"]]


def findings_now() -> list[dict[str, str]]:
    """What the doctor finds about duties, as its task keeps it."""
    return [
        {"check": each.check, "subject": each.subject, "seen": each.seen, "remedy": each.remedy}
        for each in examine()
        if each.severity == "problem" and each.check == "duties"
    ]


def test_the_task_of_an_examination_keeps_what_it_found() -> None:
    make_worker()
    rule = make_rule("doctor", "doctor")
    make_task("scheduled", run_after=ago(HOUR))
    look_now()
    task = Task.objects.get(name=EXAMINATION["name"])
    from taskqueue.alerts.tasks import examine as body

    body(rule.pk)
    rule.refresh_from_db()
    assert task.kwargs == {"rule": rule.pk}
    assert "duties" in {each["check"] for each in rule.found}


def findings() -> dict[str, str]:
    """What the doctor says of alerts."""
    return {each.seen: each.severity for each in examine() if each.check == "alerts"}


def test_the_doctor_says_nothing_of_alerts_where_there_is_no_rule() -> None:
    make_worker(status="stopped")
    assert findings() == {}


def test_the_doctor_warns_of_an_internal_queue_that_is_paused_limited_or_not_served() -> None:
    from taskqueue.engine.control.limits import limit_queue
    from taskqueue.engine.control.queues import pause, resume

    make_worker()
    make_rule()
    assert findings() == {"Alert rules: 1; their messages go out.": "ok"}
    pause("default")
    assert "The queue default is paused" in next(iter(findings()))
    resume("default")
    limit_queue("default", concurrency=3)
    assert list(findings().values()) == ["warning"]
    limit_queue("default")
    Worker.objects.update(queues={"web": 1})
    assert findings() == {
        "No running worker serves the queue default, on which messages of alerts wait.": "problem"
    }


def test_endpoints_that_a_rule_names_are_told_of_its_alerts_alone(settings: Any) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": ["127.0.0.1/32"]}
    make_worker("w1", trouble="no disk")
    with a_watcher() as (url, asked):
        endpoint = webhooks.create(url, kinds=["task.failed"]).endpoint
        make_rule("disks", mail=[], endpoints=[str(endpoint.pk)])
        make_rule("other disks", mail=[])
        look_now()
        pump(connection)
        pump(connection)
        run_due()
        assert asked == ["/ping"]
        alerts.test("disks")
        run_due()
        assert asked == ["/ping", "/ping"]
        Worker.objects.update(trouble="")
        alerts.edit("disks", endpoints=[])
        for _ in range(2):
            look_now()
        pump(connection)
        run_due()
        assert asked == ["/ping", "/ping"]
    raised = Delivery.objects.get(kind="alert.raised")
    assert raised.payload["data"]["subject"] == "w1"
    assert raised.payload["data"]["name"] == "disks"
    assert not Subscription.objects.filter(subscriber="rule").exists()
