"""Deliveries: inserted with the tasks that send them, and sent again by hand."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.core.states import FINISHED
from taskqueue.core.uuid7 import uuid7
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import Seen, require_seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.webhooks.endpoints import TEST, locked_endpoint, require_enabled
from taskqueue.engine.webhooks.messages import Message, message_of, moment_text
from taskqueue.engine.webhooks.sending import enqueue_deliveries
from taskqueue.exceptions import DeliveryDoesNotExist, TransitionRefused
from taskqueue.models import Delivery, Endpoint, Event, Subscription, Task
from taskqueue.models.webhook import DeliveryStatus

AGAIN = {
    "status": DeliveryStatus.WAITING, "attempts": 0, "answer_status": None, "error": "",
    "milliseconds": None, "answer": "", "attempted_at": None,
}  # fmt: skip


def insert_deliveries(
    connection: BaseDatabaseWrapper, messages: Sequence[tuple[int, Message]]
) -> list[UUID]:
    """Insert a delivery and its task for each endpoint and message. Return the deliveries' ids.

    This runs in the transaction of the change that the messages are about, so that both are
    committed or neither.
    """
    if not messages:
        return []
    ids = [uuid7() for _ in messages]
    endpoints = [endpoint for endpoint, _ in messages]
    tasks = enqueue_deliveries(connection, list(zip(endpoints, ids, strict=True)))
    rows = [
        Delivery(
            id=id,
            endpoint_id=endpoint,
            seq=message.seq,
            kind=message.kind,
            payload=message.payload,
            task_id=task,
        )
        for id, task, (endpoint, message) in zip(ids, tasks, messages, strict=True)
    ]
    Delivery.objects.using(connection.alias).bulk_create(rows)
    return ids


def deliver_events(
    connection: BaseDatabaseWrapper, subscription: Subscription, events: Sequence[Event]
) -> None:
    """Insert the deliveries of events that match an endpoint's subscription.

    This runs in the transaction that numbers the events, so each event has its delivery exactly
    once. A disabled endpoint stays subscribed, so that `replay` finds the events, but gets no
    deliveries.
    """
    endpoint = int(subscription.subject)
    rows = Endpoint.objects.using(connection.alias).filter(id=endpoint, is_enabled=True)
    if not rows.exists():
        return
    insert_deliveries(connection, [(endpoint, message_of(event)) for event in events])


def send_test(endpoint: int | str, *, by: object = "", reason: str = "", seen: Seen = None) -> UUID:
    """Send a test to an endpoint, even to a disabled one; return the id of the delivery.

    Raises `EndpointDoesNotExist`.
    """
    connection = project_connection()
    with atomic(using=connection.alias):
        row = locked_endpoint(connection, endpoint, seen)
        now = dialect_for(connection).now(connection)
        message = Message(kind=TEST, timestamp=moment_text(now), data={"endpoint": row.pk})
        (made,) = insert_deliveries(connection, [(row.pk, message)])
        act = Act(row.name, detail=str(made))
        audit(connection, "webhook", "test", [act], person=person(by, reason))
    return made


def redeliver(
    delivery: UUID | str, *, by: object = "", reason: str = "", seen: Seen = None
) -> None:
    """Send a delivery again, with the same `webhook-id`, by which receivers recognise it.

    Raises `DeliveryDoesNotExist`, and `TransitionRefused` if it is waiting to be sent, or if its
    endpoint is disabled.
    """
    connection = project_connection()
    with atomic(using=connection.alias):
        take_write_lock(connection)
        found = get_delivery(delivery, connection=connection)
        row = locked_endpoint(connection, found.endpoint_id)
        rows = Delivery.objects.using(connection.alias).filter(id=found.id)
        locked = rows.select_for_update().get()
        require_seen(locked, seen, _("Delivery {delivery}", delivery=locked.id))
        if locked.kind != TEST:
            require_enabled(row)
        if waiting_of(connection, [locked]):
            raise TransitionRefused(_(
                "Delivery {delivery} waits to be sent already.", delivery=locked.id
            ))  # fmt: skip
        send_again(connection, [locked])
        act = Act(row.name, locked.status, str(locked.id))
        audit(connection, "webhook", "redeliver", [act], person=person(by, reason))


def waiting_of(connection: BaseDatabaseWrapper, rows: Sequence[Delivery]) -> set[UUID]:
    """Return the ids of the deliveries that are waiting to be sent by an unfinished task."""
    waiting = {row.task_id: row.id for row in rows if row.status == DeliveryStatus.WAITING}
    tasks = Task.objects.using(connection.alias).filter(id__in=list(waiting))
    open_tasks = tasks.exclude(status__in=FINISHED).values_list("id", flat=True)
    return {waiting[task] for task in open_tasks}


def send_again(connection: BaseDatabaseWrapper, rows: Sequence[Delivery]) -> None:
    """Enqueue locked deliveries again, in the caller's transaction."""
    tasks = enqueue_deliveries(connection, [(row.endpoint_id, row.id) for row in rows])
    for row, task in zip(rows, tasks, strict=True):
        Delivery.objects.using(connection.alias).filter(id=row.id).update(task_id=task, **AGAIN)


def get_delivery(
    delivery: UUID | str, *, connection: BaseDatabaseWrapper | None = None
) -> Delivery:
    """Return a delivery. Raises `DeliveryDoesNotExist`."""
    alias = (connection or project_connection()).alias
    try:
        return Delivery.objects.using(alias).get(id=UUID(str(delivery)))
    except (ValueError, Delivery.DoesNotExist):
        raise DeliveryDoesNotExist(_(
            "There is no delivery {delivery}.", delivery=delivery
        )) from None  # fmt: skip
