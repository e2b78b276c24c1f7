"""One attempt to deliver an event to an endpoint."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from taskqueue.core.webhook_signatures import signed_headers
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.webhooks.checking import allowed_targets, secrets_at
from taskqueue.engine.webhooks.endpoints import TEST
from taskqueue.engine.webhooks.outcomes import Attempt, cancel_delivery, record_attempt
from taskqueue.exceptions import Cancel, GiveUp, RetryLater
from taskqueue.models import Delivery, Endpoint
from taskqueue.models.webhook import DeliveryStatus
from taskqueue.webhooks.body import body_of
from taskqueue.webhooks.client import NoAnswer, Refused, post


def send_delivery(endpoint: int, delivery: str, task_id: UUID) -> str:
    """Send a delivery to its endpoint, as its task; return the outcome in words.

    Raises `Cancel` if there is nothing to send, and `RetryLater` or `GiveUp` after an answer that
    is not a success.
    """
    connection = project_connection()
    row = Delivery.objects.using(connection.alias).filter(id=UUID(delivery)).first()
    found = Endpoint.objects.using(connection.alias).filter(id=endpoint).first()
    if row is None or found is None or row.task_id != task_id:
        raise Cancel("The delivery is deleted, or another task sends it.")
    if row.status != DeliveryStatus.WAITING:
        if row.status == DeliveryStatus.DELIVERED:
            return "delivered before"  # By an attempt whose end was not recorded.
        raise Cancel("The delivery does not wait any more.")
    if row.kind != TEST and not found.is_enabled:
        cancel_delivery(connection, row)
        raise Cancel("The endpoint is disabled.")
    attempt = _send(row, found)
    follows = record_attempt(connection, row, attempt, task_id=task_id)
    if follows is None:
        raise Cancel("The delivery is deleted or cancelled, or another task sends it.")
    if follows.status == DeliveryStatus.DELIVERED:
        return attempt.words
    if follows.status == DeliveryStatus.FAILED:
        raise GiveUp(attempt.words)
    raise RetryLater(timedelta(seconds=follows.delay), attempt.words)


def _send(row: Delivery, found: Endpoint) -> Attempt:
    connection = project_connection()
    now = dialect_for(connection).now(connection)
    body = json.dumps(body_of(row, found), separators=(",", ":"), ensure_ascii=False).encode()
    headers = signed_headers(
        secrets_at(found, now),
        message_id=message_id(row.id),
        timestamp=int(now.timestamp()),
        body=body,
    )
    started = time.monotonic()
    result: dict[str, Any]
    try:
        answer = post(
            found.url,
            body,
            {"Content-Type": "application/json", **headers},
            allowed=allowed_targets(),
        )
        result = {
            "status": answer.status, "answer": answer.body, "retry_after": answer.retry_after,
        }  # fmt: skip
    except (NoAnswer, Refused) as error:
        result = {"error": str(error)}
    return Attempt(milliseconds=round(1000 * (time.monotonic() - started)), **result)


def message_id(delivery: UUID) -> str:
    """Return the `webhook-id` of a delivery, the same in every attempt and redelivery."""
    return f"msg_{delivery.hex}"
