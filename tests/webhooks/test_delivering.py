"""A delivery is sent, tried again at its times, and told of in its endpoint's log."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import django
import pytest
from django.core import mail
from django.utils import timezone
from standardwebhooks import Webhook

from taskqueue import control, webhooks
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.numbering import pump
from taskqueue.engine.operations.serving import step
from taskqueue.engine.webhooks.deliveries import insert_deliveries
from taskqueue.engine.webhooks.messages import Message
from taskqueue.engine.webhooks.outcomes import DELAYS, JITTER
from taskqueue.exceptions import DeliveryDoesNotExist, TransitionRefused
from taskqueue.models import Audit, Delivery, Endpoint, Lease, Task
from taskqueue.models.webhook import LONGEST_ANSWER, DeliveryStatus
from taskqueue.monitoring.read_models.webhook import shown_deliveries
from taskqueue.testing import run_due, travelling
from tests.monitoring.rows import make_task
from tests.sample.tasks import add, log_in
from tests.webhooks.receiver import Received, Receiver, Reply

# Django 5.2 wants pairs, which 6.1 deprecates.
BOB = "bob@example.org" if django.VERSION >= (6,) else ("Bob", "bob@example.org")
pytestmark = pytest.mark.django_db
ALLOWED = {"WEBHOOK_ALLOW": ["127.0.0.1/32"]}


@pytest.fixture(autouse=True)
def _allowing(settings: Any) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, **ALLOWED}


@pytest.fixture
def made(receiver: Receiver) -> webhooks.Secret:
    """An endpoint at the receiver, with its secret."""
    return webhooks.create(f"http://127.0.0.1:{receiver.port}/hook", by="ada")


def deliver(endpoint: Endpoint, *, seq: int = 1, kind: str = "task.failed") -> Delivery:
    """Insert a delivery, as the pump does."""
    data = {"id": str(UUID(int=seq)), "name": "shop.tasks.send", "seq": seq}
    message = Message(kind=kind, timestamp="2026-11-25T00:00:00Z", data=data, seq=seq)
    (made,) = insert_deliveries(project_connection(), [(endpoint.pk, message)])
    return Delivery.objects.get(id=made)


def test_a_message_is_thin_signed_and_told_of_in_the_log(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    receiver.answers(Reply(200, body=b"thank you"))
    delivery = deliver(made.endpoint)
    (run,) = run_due()
    assert run.status == "succeeded"
    (got,) = receiver.received
    body = Webhook(made.secret).verify(got.body, dict(got.headers))
    assert body["type"] == "task.failed"
    assert body["data"]["name"] == "shop.tasks.send"
    assert body["data"]["seq"] == 1
    assert body["data"]["url"].endswith(f"/tasks/{UUID(int=1)}/")
    assert got.path == "/hook"
    delivery.refresh_from_db()
    assert delivery.status == DeliveryStatus.DELIVERED
    assert (delivery.attempts, delivery.answer_status, delivery.answer) == (1, 200, "thank you")
    assert delivery.milliseconds is not None


def test_links_begin_with_the_address_of_the_site(
    made: webhooks.Secret, receiver: Receiver, settings: Any
) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "SITE_URL": "https://shop.example.org/"}
    deliver(made.endpoint)
    run_due()
    data = json.loads(receiver.received[0].body)["data"]
    assert data["url"] == f"https://shop.example.org/api/v1/tasks/{UUID(int=1)}/"


def test_a_delivery_is_retried_at_its_times_and_keeps_its_id(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    receiver.answers(500)
    delivery = deliver(made.endpoint)
    passed = 0.0
    for number, delay in enumerate(DELAYS, start=1):
        with travelling(timedelta(seconds=passed)):
            assert [run.outcome for run in run_due()] == ["retry_later"]
        delivery.refresh_from_db()
        assert delivery.attempts == number
        assert delivery.status == DeliveryStatus.WAITING
        if delay > 60:  # Shorter ones are too close to what the test itself takes.
            with travelling(timedelta(seconds=passed + delay * 0.95)):
                assert run_due() == []
        passed += delay * (1 + JITTER) + 5
    with travelling(timedelta(seconds=passed)):
        (last,) = run_due()
    assert last.status == "failed"
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.FAILED, len(DELAYS) + 1)
    ids = {each.headers["webhook-id"] for each in receiver.received}
    assert ids == {f"msg_{delivery.id.hex}"}
    assert len(receiver.received) == len(DELAYS) + 1


def test_each_attempt_is_signed_at_its_own_time(made: webhooks.Secret, receiver: Receiver) -> None:
    receiver.answers(503, 204)
    deliver(made.endpoint)
    run_due()
    with travelling(timedelta(hours=1)):
        run_due()
    first, second = (int(each.headers["webhook-timestamp"]) for each in receiver.received)
    assert second - first >= 3600


def test_an_endpoint_that_is_down_for_an_hour_loses_nothing(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    """Ten events come within the hour, and each of them is sent in the end."""
    receiver.answers(500)
    deliveries = []
    for number in range(10):
        with travelling(timedelta(minutes=6 * number)):
            deliveries.append(deliver(made.endpoint, seq=number))
            run_due()
    assert all(each.status == DeliveryStatus.WAITING for each in Delivery.objects.all())
    receiver.answers(204)
    before = len(receiver.received)
    with travelling(timedelta(hours=4)):
        run_due()
    statuses = set(Delivery.objects.values_list("status", flat=True))
    assert statuses == {DeliveryStatus.DELIVERED}
    sent = [each.headers["webhook-id"] for each in receiver.received[before:]]
    assert sorted(sent) == sorted(f"msg_{each.id.hex}" for each in deliveries)
    made.endpoint.refresh_from_db()
    assert made.endpoint.failing_since is None


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        (lambda: "3600", 3600, 3600),
        (lambda: format_datetime(timezone.now() + timedelta(hours=2)), 7000, 7200),
        (lambda: "999999999", 86400, 86400),
        (lambda: "1", 5, 6),
        (lambda: "soon", 5, 6),
        (lambda: "", 5, 6),
    ],
)
def test_a_retry_after_is_heeded_up_to_a_day(
    header: Callable[[], str], least: float, most: float, made: webhooks.Secret, receiver: Receiver
) -> None:
    receiver.answers(Reply(429, {"Retry-After": header()}))
    delivery = deliver(made.endpoint)
    before = timezone.now()
    run_due()
    task = Task.objects.get(id=delivery.task_id)
    waits = (task.run_after - before).total_seconds()
    assert least - 1 <= waits <= most + 60


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 500, 503])
def test_a_response_other_than_2xx_is_a_failure(
    status: int, made: webhooks.Secret, receiver: Receiver
) -> None:
    receiver.answers(Reply(status, {"Location": "http://127.0.0.1:9/"}))
    delivery = deliver(made.endpoint)
    assert [run.outcome for run in run_due()] == ["retry_later"]
    delivery.refresh_from_db()
    assert (delivery.status, delivery.answer_status) == (DeliveryStatus.WAITING, status)


def test_a_refused_host_is_a_failure_that_says_why(settings: Any) -> None:
    made = webhooks.create("https://hooks.test/")
    delivery = deliver(made.endpoint)
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": []}
    Endpoint.objects.update(url="https://127.0.0.1/")
    assert [run.outcome for run in run_due()] == ["retry_later"]
    delivery.refresh_from_db()
    assert "not public" in delivery.error
    assert delivery.answer_status is None


def test_410_disables_the_endpoint_and_its_owner_is_notified(
    made: webhooks.Secret, receiver: Receiver, django_user_model: Any
) -> None:
    django_user_model.objects.create_user("ada", "ada@example.org")
    receiver.answers(410)
    first, second = deliver(made.endpoint, seq=1), deliver(made.endpoint, seq=2)
    run_due()
    made.endpoint.refresh_from_db()
    assert (made.endpoint.is_enabled, made.endpoint.disabled_for) == (False, "gone")
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == (DeliveryStatus.FAILED, DeliveryStatus.CANCELLED)
    assert len(receiver.received) == 1
    (sent,) = mail.outbox
    assert sent.to == ["ada@example.org"]
    assert "410" in sent.body
    assert "/hook" not in sent.body
    (entry,) = Audit.objects.filter(noun="webhook", verb="disable")
    assert (entry.actor, entry.subject, entry.detail) == (
        "taskqueue",
        str(made.endpoint.pk),
        "gone",
    )


def test_an_endpoint_that_fails_for_five_days_is_disabled_once(
    made: webhooks.Secret, receiver: Receiver, settings: Any
) -> None:
    settings.ADMINS = [BOB]
    receiver.answers(500)
    for day in range(7):
        if Endpoint.objects.get().is_enabled:
            deliver(made.endpoint, seq=day)
        with travelling(timedelta(days=day)):
            run_due()
        assert Endpoint.objects.get().is_enabled is (day < 5)
    assert Endpoint.objects.get().disabled_for == "failing"
    assert not Delivery.objects.filter(status=DeliveryStatus.WAITING).exists()
    (sent,) = mail.outbox
    assert sent.to == ["bob@example.org"]
    assert Audit.objects.filter(noun="webhook", verb="disable").count() == 1


def test_a_success_ends_the_failing(made: webhooks.Secret, receiver: Receiver) -> None:
    receiver.answers(500, 204, 500)
    deliver(made.endpoint)
    run_due()
    assert Endpoint.objects.get().failing_since is not None
    with travelling(timedelta(hours=1)):
        run_due()
    assert Endpoint.objects.get().failing_since is None
    deliver(made.endpoint, seq=2)
    with travelling(timedelta(days=6)):
        run_due()
    assert Endpoint.objects.get().is_enabled


def test_a_redelivery_has_the_same_id_and_other_attempts(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    delivery = deliver(made.endpoint)
    with pytest.raises(TransitionRefused, match="waits"):
        webhooks.redeliver(delivery.id)
    run_due()
    webhooks.redeliver(delivery.id, by="ada", reason="they lost it")
    run_due()
    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == (DeliveryStatus.DELIVERED, 1)
    entry = Audit.objects.get(verb="redeliver")
    assert (entry.actor, entry.reason) == ("ada", "they lost it")
    with pytest.raises(DeliveryDoesNotExist):
        webhooks.redeliver("nothing")


def test_a_task_that_a_redelivery_replaced_sends_nothing(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    delivery = deliver(made.endpoint)
    Delivery.objects.filter(id=delivery.id).update(status=DeliveryStatus.CANCELLED)
    webhooks.redeliver(delivery.id)
    assert sorted(run.status for run in run_due()) == ["cancelled", "succeeded"]
    assert len(receiver.received) == 1


def test_nothing_is_sent_to_an_endpoint_that_was_disabled_meanwhile(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    delivery = deliver(made.endpoint)
    webhooks.disable(made.endpoint.pk)
    late = deliver(made.endpoint, seq=2)  # By a pump that had read the subscriptions before.
    run_due()
    assert receiver.received == []
    for each in (delivery, late):
        each.refresh_from_db()
        assert each.status == DeliveryStatus.CANCELLED
    with pytest.raises(TransitionRefused, match="disabled"):
        webhooks.redeliver(delivery.id)


def test_a_test_is_sent_also_to_a_disabled_endpoint(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    webhooks.disable(made.endpoint.pk)
    delivery = webhooks.test(made.endpoint.pk)
    run_due()
    assert json.loads(receiver.received[0].body)["type"] == "webhook.test"
    assert Delivery.objects.get(id=delivery).status == DeliveryStatus.DELIVERED


def test_after_a_rotation_both_secrets_verify_for_a_day(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    rotated = webhooks.rotate(made.endpoint.pk)
    assert rotated.secret != made.secret
    deliver(made.endpoint)
    run_due()
    with travelling(timedelta(days=1, minutes=1)):
        deliver(made.endpoint, seq=2)
        run_due()
    during, after = receiver.received
    assert len(signatures(during)) == 2
    for secret in (made.secret, rotated.secret):
        Webhook(secret).verify(during.body, dict(during.headers))
    assert len(signatures(after)) == 1


def test_the_answer_of_a_receiver_is_stored_shortened(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    receiver.answers(Reply(500, body=b"\x00\xff" + b"<b>x</b>" * 1000))
    delivery = deliver(made.endpoint)
    run_due()
    delivery.refresh_from_db()
    assert len(delivery.answer) <= LONGEST_ANSWER
    assert "\x00" not in delivery.answer


def test_no_secret_is_in_tasks_audit_or_deliveries(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    receiver.answers(500)
    deliver(made.endpoint)
    run_due()
    rotated = webhooks.rotate(made.endpoint.pk)
    webhooks.edit(made.endpoint.pk, url=f"http://127.0.0.1:{receiver.port}/other-token")
    for model in (Task, Audit, Delivery):
        text = str(list(model.objects.values()))
        for secret in (made.secret, rotated.secret, "/hook", "other-token"):
            assert secret not in text


def signatures(received: Received) -> list[str]:
    """The signatures of a message."""
    return received.headers["webhook-signature"].split()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (add.name, "bad order 7f3a"),
        (log_in.name, "[redacted]"),  # Its password is sensitive.
        ("of.other.code", "[redacted]"),
    ],
)
def test_a_message_of_an_error_is_shown_only_without_sensitive_arguments(
    made: webhooks.Secret, receiver: Receiver, name: str, message: str
) -> None:
    webhooks.edit(made.endpoint.pk, include=["error"])
    failed = make_task("failed", name=name, attempt=1)
    Lease.objects.create(
        task=failed, attempt=1, status="failed", worker_id="w1", error_class="shop.Bad",
        error_message="bad order 7f3a", claimed_at=timezone.now(), expires_at=timezone.now(),
        finished_at=timezone.now(),
    )  # fmt: skip
    data = {"id": str(failed.id), "name": name, "attempt": 1}
    told = Message(kind="task.failed", timestamp="2026-11-25T00:00:00Z", data=data, seq=1)
    insert_deliveries(project_connection(), [(made.endpoint.pk, told)])
    run_due()
    data = json.loads(receiver.received[0].body)["data"]
    assert data["error"] == {"class": "shop.Bad", "message": message}


def test_a_delivery_that_waits_says_when_it_is_tried_next(
    made: webhooks.Secret, receiver: Receiver
) -> None:
    receiver.answers(500, 204)
    delivery = deliver(made.endpoint)

    def next_at() -> Any:
        (shown,) = shown_deliveries(Delivery.objects.all())
        return shown.next_at

    assert next_at() == Task.objects.get().run_after
    run_due()
    attempted = Delivery.objects.get(id=delivery.id).attempted_at
    assert attempted is not None
    assert timedelta(seconds=5) <= next_at() - attempted <= timedelta(seconds=10)
    with travelling(timedelta(seconds=60)):
        run_due()
    assert next_at() is None


@pytest.mark.parametrize("is_pruned", [False, True])
def test_a_delivery_whose_task_ended_without_it_can_be_sent_again(
    is_pruned: bool, made: webhooks.Secret, receiver: Receiver
) -> None:
    delivery = deliver(made.endpoint)
    control.cancel(delivery.task_id)
    if is_pruned:
        Task.objects.all().delete()
    (shown,) = shown_deliveries(Delivery.objects.all())
    assert (shown.status, shown.next_at) == (DeliveryStatus.WAITING, None)
    webhooks.redeliver(delivery.id)
    with pytest.raises(TransitionRefused, match="waits"):
        webhooks.redeliver(delivery.id)
    run_due()
    assert Delivery.objects.get().status == DeliveryStatus.DELIVERED
    assert len(receiver.received) == 1


def test_a_replay_sends_a_delivery_whose_task_ended_without_it(made: webhooks.Secret) -> None:
    add.enqueue(1, 2)
    pump(project_connection())
    (delivery,) = Delivery.objects.all()
    control.cancel(delivery.task_id)
    webhooks.replay(made.endpoint.pk, since=timezone.now() - timedelta(hours=1))
    step(project_connection())
    assert Delivery.objects.get().task_id != delivery.task_id
    assert Task.objects.get(id=Delivery.objects.get().task_id).status == "ready"


def test_a_new_address_begins_without_the_failures_of_the_old_one(made: webhooks.Secret) -> None:
    Endpoint.objects.update(failing_since=timezone.now() - timedelta(days=4))
    webhooks.edit(made.endpoint.pk, description="still the same address")
    assert Endpoint.objects.get().failing_since is not None
    webhooks.edit(made.endpoint.pk, url="https://hooks.test/other")
    assert Endpoint.objects.get().failing_since is None


def test_the_audit_tells_what_an_edit_has_widened() -> None:
    made = webhooks.create("https://hooks.test/", kinds=["task.failed"], include=["error"])
    webhooks.edit(made.endpoint.pk, kinds=[], include=[], description="for Ada")
    entry = Audit.objects.get(noun="webhook", verb="edit")
    assert entry.detail == "kinds all; include nothing; description"
    entry = Audit.objects.get(noun="webhook", verb="create")
    assert entry.detail == "url https://hooks.test; kinds task.failed; include error"
