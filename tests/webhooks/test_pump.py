"""Events cause deliveries in the transaction that numbers them: each one, or neither."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from standardwebhooks import Webhook

from taskqueue import webhooks
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.events import effects, numbering
from taskqueue.engine.events.numbering import pump
from taskqueue.engine.operations.serving import step
from taskqueue.engine.webhooks.deliveries import deliver_events
from taskqueue.exceptions import InvalidWebhook
from taskqueue.models import Delivery, Event, Subscription, Task
from taskqueue.models.event import Subscriber
from taskqueue.testing import run_due
from tests.engine.steps import another_connection
from tests.events.steps import are_numbered
from tests.sample.tasks import add, fail
from tests.webhooks.receiver import Receiver

URL = "https://hooks.test/in"


@pytest.fixture
def _allowing(settings: Any) -> None:
    settings.TASKQUEUE = {**settings.TASKQUEUE, "WEBHOOK_ALLOW": ["127.0.0.1/32"]}


def at(receiver: Receiver) -> str:
    return f"http://127.0.0.1:{receiver.port}/"


def settle() -> None:
    """Run what is due, number what came of it, and send it."""
    run_due()
    pump(connection)
    run_due()


@pytest.mark.django_db
@pytest.mark.usefixtures("_allowing")
def test_a_failure_is_reported_with_its_number_and_status(receiver: Receiver) -> None:
    made = webhooks.create(at(receiver), kinds=["task.failed"])
    result = fail.enqueue("no paper")
    add.enqueue(1, 2)
    settle()
    (got,) = receiver.received
    body = Webhook(made.secret).verify(got.body, dict(got.headers))
    event = Event.objects.get()
    data = body["data"]
    assert body["type"] == "task.failed"
    assert (data["id"], data["name"]) == (str(result.id), fail.name)
    assert (data["seq"], data["attempt"]) == (event.seq, 1)
    assert data["status"] == "failed"
    assert "no paper" not in got.body.decode()


@pytest.mark.django_db
@pytest.mark.usefixtures("_allowing")
def test_the_error_is_told_where_the_endpoint_includes_it(receiver: Receiver) -> None:
    webhooks.create(at(receiver), kinds=["task.failed"], include=["error"])
    fail.enqueue("no paper")
    settle()
    data = json.loads(receiver.received[0].body)["data"]
    assert "no paper" in data["error"]["message"]
    assert data["error"]["class"]


@pytest.mark.django_db
@pytest.mark.usefixtures("_allowing")
def test_arguments_and_results_are_in_no_message(receiver: Receiver) -> None:
    webhooks.create(at(receiver))
    add.enqueue(424242, 1)
    settle()
    assert receiver.received
    told = " ".join(each.body.decode() for each in receiver.received)
    assert "424242" not in told
    assert "424243" not in told


@pytest.mark.django_db
@pytest.mark.usefixtures("_allowing")
def test_deliveries_cause_no_deliveries(receiver: Receiver) -> None:
    webhooks.create(at(receiver))
    add.enqueue(1, 2)
    settle()
    settle()
    names = {json.loads(each.body)["data"].get("name") for each in receiver.received}
    assert names == {add.name}
    assert are_numbered()


@pytest.mark.django_db
def test_patterns_of_names_and_queues_choose_the_events() -> None:
    webhooks.create(URL, kinds=["task.enqueued"], names=["tests.sample.*"], queues=["mail*"])
    add.using(queue_name="mail-low").enqueue(1, 1)
    add.enqueue(1, 2)
    pump(connection)
    (delivery,) = Delivery.objects.all()
    assert delivery.payload["data"]["queue"] == "mail-low"


@pytest.mark.django_db
def test_a_disabled_endpoint_gets_no_events_until_it_is_enabled() -> None:
    made = webhooks.create(URL, kinds=["task.enqueued"])
    webhooks.disable(made.endpoint.pk)
    add.enqueue(1, 1)
    pump(connection)
    assert not Delivery.objects.exists()
    webhooks.enable(made.endpoint.pk)
    add.enqueue(1, 2)
    pump(connection)
    assert Delivery.objects.count() == 1


@pytest.mark.django_db
def test_a_replay_sends_what_happened_while_the_endpoint_was_disabled() -> None:
    made = webhooks.create(URL, kinds=["task.failed"])
    webhooks.disable(made.endpoint.pk)
    webhooks.edit(made.endpoint.pk, kinds=["task.enqueued"])
    add.enqueue(1, 1)
    pump(connection)
    assert not Delivery.objects.exists()
    webhooks.enable(made.endpoint.pk)
    webhooks.replay(made.endpoint.pk, since=timezone.now() - timedelta(hours=1))
    step(connection)
    assert Delivery.objects.get().kind == "task.enqueued"


@pytest.mark.django_db
def test_an_edit_of_an_endpoint_changes_its_events() -> None:
    made = webhooks.create(URL, kinds=["task.failed"])
    webhooks.edit(made.endpoint.pk, kinds=["task.enqueued"])
    add.enqueue(1, 2)
    pump(connection)
    assert Delivery.objects.get().kind == "task.enqueued"


@pytest.mark.django_db
def test_deleting_an_endpoint_leaves_no_subscription() -> None:
    made = webhooks.create(URL)
    webhooks.delete(made.endpoint.pk)
    assert not Subscription.objects.exists()
    add.enqueue(1, 2)
    pump(connection)
    assert not Delivery.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db
def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidWebhook, match=r"Did you mean 'task\.failed'"):
        webhooks.create(URL, kinds=["task.faild"])
    assert not Subscription.objects.exists()


# A pump that is killed, and mistakes that would lose deliveries or send them without an event.


class Killed(BaseException):
    """The process is gone."""


Effect = Callable[[Any, Any, Sequence[Event]], None]


@contextmanager
def _killed_before_the_commit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    @contextmanager
    def dying(own: Any) -> Iterator[None]:
        with orm_transaction(own):
            yield
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(numbering, "orm_transaction", dying)
        with pytest.raises(Killed):
            yield


def faults(monkeypatch: pytest.MonkeyPatch, after_commit: Callable[[], None] = lambda: None) -> str:
    """Kill pumps before and after their COMMIT; say what is wrong then, empty for nothing."""
    webhooks.create(URL, kinds=["task.enqueued"])
    webhooks.create(URL, kinds=["task.enqueued"])
    add.enqueue_many([((1, number), {}) for number in range(5)])
    with _killed_before_the_commit(monkeypatch):
        pump(connection)
    if Event.objects.exclude(seq=None).exists():
        return "an event has a number"
    if Delivery.objects.exists() or sending():
        return "a delivery without an event"
    pump(connection)
    # The next pump, where the one before was killed right after its COMMIT.
    pump(connection)
    pairs = Counter(Delivery.objects.values_list("endpoint_id", "seq"))
    if len(pairs) != 10 or set(pairs.values()) != {1} or len(sending()) != 10:
        return f"deliveries {len(pairs)} of 10, tasks {len(sending())}"
    tasks = {delivery.task_id for delivery in Delivery.objects.all()}
    return "" if tasks == sending() else "a delivery without a task"


def sending() -> set[Any]:
    """The tasks that send."""
    tasks = Task.objects.filter(name="taskqueue.webhooks.deliver")
    return set(tasks.values_list("id", flat=True))


@pytest.mark.django_db(transaction=True)
def test_killed_pumps_lose_no_delivery_and_make_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults(monkeypatch) == ""


@pytest.mark.django_db(transaction=True)
def test_a_delivery_that_is_enqueued_after_the_commit_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def later(own: Any, subscription: Any, events: Sequence[Event]) -> None:
        """The mistake: it is only noted, and the process is gone before it is done."""

    monkeypatch.setitem(effects.EFFECTS, Subscriber.ENDPOINT, later)
    assert faults(monkeypatch) == "deliveries 0 of 10, tasks 0"


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_delivery_that_is_committed_before_the_event_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sooner(own: Any, subscription: Any, events: Sequence[Event]) -> None:
        """The mistake: on a connection of its own."""
        with another_connection() as other, orm_transaction(other):
            deliver_events(other, subscription, events)

    monkeypatch.setitem(effects.EFFECTS, Subscriber.ENDPOINT, sooner)
    assert faults(monkeypatch) == "a delivery without an event"
