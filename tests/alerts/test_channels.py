"""Heartbeats, and webhook endpoints that rules name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from django.db import connection

from taskqueue import alerts, webhooks
from taskqueue.alerts.duty import look
from taskqueue.declarations.own_tasks import HEARTBEAT
from taskqueue.engine.events.numbering import pump
from taskqueue.models import (
    AlertRule,
    Delivery,
    Subscription,
    Task,
    Worker,
)
from taskqueue.monitoring.doctor import examine
from taskqueue.monitoring.notices import notices
from taskqueue.testing import run_due
from tests.alerts.steps import look_now, make_rule, pass_time
from tests.monitoring.metrics.scraping import scrape, value
from tests.monitoring.rows import make_worker

pytestmark = pytest.mark.django_db


@contextmanager
def a_watcher(status: int = 200, *, port: int = 0) -> Iterator[tuple[str, list[str]]]:
    """A server that notes the paths it is asked for; its address, and these."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", port), Handler)
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


def test_a_heartbeat_is_due_at_its_interval() -> None:
    make_worker()
    rule = make_rule("beat", "heartbeat", url="https://watcher.example/", threshold=120, mail=[])
    look_now()
    rule.refresh_from_db()
    assert rule.next_at is not None
    assert rule.evaluated_at is not None
    assert rule.next_at - rule.evaluated_at == timedelta(seconds=120)
    assert not look(connection)


def test_a_heartbeat_goes_to_no_address_that_is_not_public_any_more(settings: Any) -> None:
    before = settings.TASKQUEUE
    settings.TASKQUEUE = {**before, "WEBHOOK_ALLOW": ["127.0.0.1/32"]}
    make_worker()
    with a_watcher() as (url, asked):
        make_rule("beat", "heartbeat", url=url, mail=[])
        settings.TASKQUEUE = before
        look_now()
        run_due()
        assert asked == []
    assert Task.objects.get().status == "failed"


def test_endpoints_that_a_rule_names_receive_its_alerts_only(settings: Any) -> None:
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
    assert not Subscription.objects.filter(subject="disks").exists()
    raised = Delivery.objects.get(kind="alert.raised")
    assert raised.payload["data"]["subject"] == "w1"
    assert raised.payload["data"]["name"] == "disks"


def test_endpoints_of_a_silenced_rule_hear_of_what_still_fires_when_its_silence_ends(
    settings: Any,
) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": ["127.0.0.1/32"]}
    make_worker("w1", trouble="no disk")
    with a_watcher() as (url, asked):
        named = webhooks.create(url, kinds=["task.failed"]).endpoint
        subscribed = webhooks.create(f"{url}/all", kinds=["alert.*"]).endpoint
        make_rule("disks", mail=[], endpoints=[str(named.pk), str(subscribed.pk)])
        alerts.silence("disks", until=timedelta(hours=1))
        look_now()
        pump(connection)
        run_due()
        assert asked == ["/ping/all"]  # It subscribes to all that happens.
        pass_time(3601)
        look_now()
        pump(connection)
        run_due()
        assert asked == ["/ping/all", "/ping"]
    told = Delivery.objects.get(endpoint_id=named.pk)
    assert (told.seq, told.kind, told.payload["data"]["subject"]) == (None, "alert.raised", "w1")


def test_a_heartbeat_that_fails_is_logged_once_and_again_when_it_works(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": ["127.0.0.1/32"]}
    caplog.set_level("INFO", logger="taskqueue")
    make_worker()

    def call() -> list[str]:
        caplog.clear()
        look_now()
        run_due()
        return [
            record.getMessage() for record in caplog.records if "eartbeat" in record.getMessage()
        ]

    with a_watcher(status=500) as (url, _):
        make_rule("beat", "heartbeat", url=url, mail=[])
        assert call() == ["Heartbeat fails rule=beat error=It answered 500."]
        assert [call(), call()] == [[], []]
        (finding,) = [each for each in examine() if each.subject == "beat"]
        assert (finding.check, finding.severity) == ("alerts", "warning")
        (notice,) = [each for each in notices() if each.code == "heartbeat_failing"]
        assert (notice.subject, notice.level) == ("beat", "warning")
        assert (finding.seen, finding.remedy) == (notice.sentence, notice.remedy)
        assert finding.seen.endswith(": It answered 500.")
        assert notice.since is not None
        assert value(scrape(), "notices", kind="heartbeat_failing", level="warning") == 1
    rule = AlertRule.objects.get()
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    with a_watcher(port=port):
        assert call() == ["Heartbeat works again rule=beat"]
        assert call() == []
    rule.refresh_from_db()
    assert (rule.failing_since, rule.failure) == (None, "")
    assert Task.objects.filter(status="failed").count() == 3


def test_the_doctor_names_rules_whose_endpoints_are_deleted_or_disabled(settings: Any) -> None:
    make_worker()
    ids = [str(webhooks.create("https://hooks.example.com/").endpoint.pk) for _ in range(2)]
    make_rule("disks", endpoints=ids)
    webhooks.delete(ids[0])
    webhooks.disable(ids[1])
    seen = [each.seen for each in examine() if each.subject == "disks"]
    assert seen == [
        f"The alert rule disks tells the webhook endpoint {ids[0]}, which does not exist.",
        f"The alert rule disks tells the webhook endpoint {ids[1]}, which is disabled.",
    ]
