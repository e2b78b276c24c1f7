"""The doctor and the metrics tell of endpoints that fail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import webhooks
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.queues import pause
from taskqueue.engine.events.subscribing import subscribe
from taskqueue.models import Delivery, Endpoint, Event
from taskqueue.models.event import Subscriber
from taskqueue.monitoring.doctor.events import look_at_events
from taskqueue.monitoring.doctor.webhooks import look_at_webhooks
from taskqueue.monitoring.metrics import exposition
from tests.events.steps import number_all

pytestmark = pytest.mark.django_db
URL = "https://example.com/in?token=mysteriousToken"


def findings() -> dict[str, str]:
    """What the doctor finds, by the severity."""
    return {str(each.severity): each.seen for each in look_at_webhooks(project_connection())}


def test_the_doctor_is_content_without_trouble() -> None:
    webhooks.create(URL)
    assert findings() == {"ok": "Enabled endpoints of webhooks: 1. None fails."}


def test_the_doctor_reports_an_endpoint_that_fails_for_an_hour() -> None:
    webhooks.create(URL)
    Endpoint.objects.update(failing_since=timezone.now() - timedelta(minutes=5))
    assert "ok" in findings()
    Endpoint.objects.update(failing_since=timezone.now() - timedelta(hours=2))
    seen = findings()["warning"]
    assert "https://example.com has succeeded since" in seen
    assert "mysteriousToken" not in seen


@pytest.mark.parametrize(("why", "said"), [("gone", "410"), ("failing", "five days")])
def test_the_doctor_reports_an_endpoint_that_disabled_itself(why: str, said: str) -> None:
    webhooks.create(URL)
    Endpoint.objects.update(is_enabled=False, disabled_for=why)
    assert said in findings()["warning"]


def test_the_doctor_tells_nothing_of_one_that_a_person_disabled() -> None:
    webhooks.disable(webhooks.create(URL).endpoint.pk)
    assert set(findings()) == {"ok"}


@pytest.mark.parametrize("entry", ["0.0.0.0/0", "*", "::/0"])
def test_the_doctor_tells_that_the_setting_allows_nearly_everything(
    entry: str, settings: Any
) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": [entry]}
    assert entry in findings()["info"]


def test_metrics_tell_of_endpoints_by_state() -> None:
    made = webhooks.create(URL)
    webhooks.test(made.endpoint.pk)
    webhooks.disable(webhooks.create(URL).endpoint.pk)
    text = exposition()[0].decode()
    assert 'taskqueue_webhook_endpoints{state="active"} 1.0' in text
    assert 'taskqueue_webhook_endpoints{state="disabled"} 1.0' in text
    assert "taskqueue_webhook_deliveries_waiting 1.0" in text
    assert "example.com" not in text
    assert "taskqueue_webhook_deliveries_failed 0.0" in text
    Delivery.objects.update(status="failed")
    assert "taskqueue_webhook_deliveries_failed 1.0" in exposition()[0].decode()


def test_the_doctor_and_the_metrics_tell_that_nobody_numbers_events() -> None:
    def seen() -> dict[str, str]:
        return {str(each.severity): each.seen for each in look_at_events(project_connection())}

    assert seen() == {}
    subscribe(project_connection(), Subscriber.STREAM, "reader", EventFilter.of("queue.paused"))
    assert seen() == {"ok": "Events are numbered; the last one is number 0. Subscriptions: 1."}
    pause("mail")
    assert "ok" in seen()
    Event.objects.update(at=timezone.now() - timedelta(minutes=5))
    assert seen()["problem"].startswith(
        "No worker numbers events. Those that wait: 1, the oldest for 5 min"
    )
    text = exposition()[0].decode()
    assert "taskqueue_events_unnumbered 1.0" in text
    (lag,) = [line for line in text.splitlines() if line.startswith("taskqueue_events_lag_seconds")]
    assert 300 <= float(lag.split()[1]) < 400
    number_all()
    assert "ok" in seen()
