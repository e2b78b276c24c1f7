"""Replay: send an endpoint all events since a time again, as far as they are kept.

A replay is an operation: any worker runs it, in chunks, each in one transaction with its progress.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.refusals import refusal as _
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.changes import moment_of
from taskqueue.engine.control.locking import Seen
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.events.effects import causes_nothing
from taskqueue.engine.events.handling import handled_names
from taskqueue.engine.notify import ANYWHERE, wake
from taskqueue.engine.webhooks.deliveries import insert_deliveries, send_again, waiting_of
from taskqueue.engine.webhooks.endpoints import locked_endpoint, require_enabled
from taskqueue.engine.webhooks.messages import message_of
from taskqueue.engine.webhooks.subscribing import wants
from taskqueue.exceptions import InvalidWebhook
from taskqueue.models import Audience, Delivery, Endpoint, Event, Operation, Subscription
from taskqueue.models.operation import OperationStatus

REPLAY = "replay"
# The most events that one chunk reads.
CHUNK = 500
ROUGHLY = timedelta(seconds=1)


def replay(
    endpoint: int | str,
    *,
    since: datetime,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> Operation:
    """Send an endpoint all matching events since a time again; return the operation.

    Events that happen from now on are sent as usual. Raises `EndpointDoesNotExist`,
    `InvalidWebhook` for a time in the future, and `TransitionRefused` for a disabled endpoint.
    """
    connection = project_connection()
    who = person(by, reason)
    with atomic(using=connection.alias):
        row = locked_endpoint(connection, endpoint, seen)
        require_enabled(row)
        now = dialect_for(connection).now(connection)
        moment = moment_of(since, now, what="since")
        if moment > now:
            raise InvalidWebhook(_(
                "since must not be in the future, not at {moment}.", moment=moment.isoformat()
            ), path=("since",))  # fmt: skip
        audience = Audience.objects.using(connection.alias).first()
        last, pruned = (0, 0) if audience is None else (audience.last_seq, audience.pruned_seq)
        operation = Operation.objects.using(connection.alias).create(
            verb=REPLAY,
            arguments={"endpoint": row.pk, "since": moment.isoformat()},
            chosen={"after": pruned, "last": last, "since": moment.isoformat()},
            requested_by=who.by,
            reason=who.reason,
        )
        operation.refresh_from_db()
        act = Act(row.name, detail=f"since {moment.isoformat()}; operation {operation.id}")
        audit(connection, "webhook", "replay", [act], person=who)
        wake(connection, ANYWHERE)
    return operation


def replay_chunk(connection: BaseDatabaseWrapper, operation: Operation) -> None:
    """Send the next events of a locked operation, whose row the caller saves.

    Locks the endpoint, then its deliveries by id, as the verbs do.
    """
    chosen = dict(operation.chosen)
    rows = Endpoint.objects.using(connection.alias).filter(id=operation.arguments["endpoint"])
    endpoint = rows.select_for_update().first()
    if endpoint is None or not endpoint.is_enabled:
        operation.status = OperationStatus.FINISHED.value
        operation.error = "The endpoint was disabled or deleted."
        return
    since = datetime.fromisoformat(chosen["since"])
    # Skips older events, which may be most of those kept. Roughly, because SQLite compares text.
    events = Event.objects.using(connection.alias).filter(
        seq__gt=chosen["after"], seq__lte=chosen["last"], at__gt=since - ROUGHLY
    )
    found = list(events.order_by("seq")[:CHUNK])
    # Events about the tasks of handlers themselves are sent to nobody, and are not replayed.
    own = handled_names(list(Subscription.objects.using(connection.alias)))
    wanted = [
        event
        for event in found
        if event.at >= since and not causes_nothing(event, own) and wants(endpoint, event)
    ]
    operation.matched += len(wanted)
    operation.done += _send(connection, endpoint, wanted)
    if len(found) < CHUNK:
        operation.status = OperationStatus.FINISHED.value
    else:
        operation.chosen = {**chosen, "after": found[-1].seq}


def _send(connection: BaseDatabaseWrapper, endpoint: Endpoint, events: list[Event]) -> int:
    """Send these events to an endpoint, except those that wait to be sent. Return how many."""
    rows = Delivery.objects.using(connection.alias).filter(
        endpoint_id=endpoint.pk, seq__in=[event.seq for event in events]
    )
    known: dict[Any, Delivery] = {row.seq: row for row in rows.order_by("id").select_for_update()}
    waiting = waiting_of(connection, list(known.values()))
    again = [row for row in known.values() if row.id not in waiting]
    send_again(connection, again)
    new = [(endpoint.pk, message_of(event)) for event in events if event.seq not in known]
    return len(again) + len(insert_deliveries(connection, new))
