"""An endpoint that nobody answers for gets all that it missed, and holds up no other."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from taskqueue import webhooks
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.numbering import pump
from taskqueue.engine.webhooks.deliveries import insert_deliveries
from taskqueue.engine.webhooks.messages import Message
from taskqueue.models import Delivery, Event
from taskqueue.models.webhook import DeliveryStatus
from taskqueue.testing import run_due, travelling
from tests.engine.limit_steps import take
from tests.sample.tasks import add
from tests.webhooks.receiver import receiving

pytestmark = pytest.mark.django_db
# Nobody else listens there.
HOST = "127.0.0.3"


def test_an_endpoint_without_a_server_for_an_hour_loses_nothing(settings: Any) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": [f"{HOST}/32"]}
    with receiving(HOST) as before:
        port = before.port
    made = webhooks.create(f"http://{HOST}:{port}/", kinds=["task.enqueued"])
    for minutes in range(0, 60, 6):
        with travelling(timedelta(minutes=minutes)):
            add.enqueue(1, minutes)
            pump(connection)
            run_due()
    assert set(Delivery.objects.values_list("status", flat=True)) == {DeliveryStatus.WAITING}
    made.endpoint.refresh_from_db()
    assert made.endpoint.failing_since is not None
    with receiving(HOST, port=port) as receiver, travelling(timedelta(hours=4)):
        run_due()
    assert set(Delivery.objects.values_list("status", flat=True)) == {DeliveryStatus.DELIVERED}
    numbers = set(Event.objects.filter(kind="task.enqueued").values_list("seq", flat=True))
    told = Delivery.objects.values_list("id", "seq")
    assert len(told) == 10
    assert {seq for _, seq in told} <= numbers
    sent = sorted(each.headers["webhook-id"] for each in receiver.received)
    assert sent == sorted(f"msg_{id.hex}" for id, _ in told)
    made.endpoint.refresh_from_db()
    assert made.endpoint.failing_since is None


def test_a_slow_endpoint_is_sent_four_at_once_and_holds_up_no_other() -> None:
    slow = webhooks.create("https://slow.test/", kinds=["task.failed"]).endpoint
    other = webhooks.create("https://other.test/", kinds=["task.failed"]).endpoint
    messages = [
        Message(kind="task.failed", timestamp="2026-11-25T00:00:00Z", data={}, seq=number)
        for number in range(8)
    ]
    insert_deliveries(
        project_connection(),
        [*((slow.pk, each) for each in messages), (other.pk, messages[-1])],
    )
    sent = Delivery.objects.filter(task_id__in=[each.task_id for each in take()])
    assert Counter(sent.values_list("endpoint_id", flat=True)) == {slow.pk: 4, other.pk: 1}
    assert take() == []
