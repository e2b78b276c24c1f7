"""The tasks that send webhooks, and tell an owner that an endpoint is disabled."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from taskqueue.core.webhook_signatures import signed_headers
from taskqueue.declarations.context import AttemptContext
from taskqueue.definitions import task
from taskqueue.engine.connections import project_connection
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.webhooks.checking import allowed_targets, secrets_at
from taskqueue.engine.webhooks.endpoints import TEST
from taskqueue.engine.webhooks.outcomes import Attempt, cancel_delivery, record_attempt
from taskqueue.engine.webhooks.sending import DELIVER, TELL
from taskqueue.exceptions import Cancel, GiveUp, RetryLater
from taskqueue.models import Delivery, Endpoint
from taskqueue.models.webhook import DeliveryStatus


@task(takes_context=True, **DELIVER)
def deliver(context: AttemptContext, endpoint: int, delivery: str) -> str:
    """Send a delivery to its endpoint; the other attempts follow from what comes back."""
    connection = project_connection()
    task_id = UUID(context.task_id)
    row = Delivery.objects.using(connection.alias).filter(id=UUID(delivery)).first()
    found = Endpoint.objects.using(connection.alias).filter(id=endpoint).first()
    if row is None or found is None or row.task_id != task_id:
        raise Cancel("The delivery is deleted, or another task sends it.")
    if row.status != DeliveryStatus.WAITING:
        if row.status == DeliveryStatus.DELIVERED:
            return "delivered before"  # By an attempt whose end was lost.
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
    # Only now: it brings modules that few processes need.
    from taskqueue.webhooks.body import body_of
    from taskqueue.webhooks.client import NoAnswer, Refused, post

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


@task(**TELL)
def tell_owner(endpoint: int) -> None:
    """Tell who created an endpoint by mail that it is disabled; without an address, the admins."""
    from taskqueue.webhooks.telling import tell

    found = Endpoint.objects.using(project_connection().alias).filter(id=endpoint).first()
    if found is not None and not found.is_enabled:
        tell(found)
