"""Endpoints of webhooks and their deliveries, for those who may manage webhooks.

No read model has a secret: the verb that makes one shows it, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskqueue.core.event_kinds import ALL_KINDS
from taskqueue.core.states import FINISHED
from taskqueue.engine.connections import database_alias
from taskqueue.engine.statement import Statement
from taskqueue.models import Delivery, Endpoint, Task
from taskqueue.models.webhook import DeliveryStatus, DisabledFor, Include
from taskqueue.monitoring.counts import CAP, Count
from taskqueue.monitoring.read_models.base import about, from_row
from taskqueue.monitoring.reading import now, read

MOST_ENDPOINTS = 1_000
# By the partial index of waiting deliveries, up to a cap for each endpoint.
WAITING = Statement.of("""
    SELECT endpoint.id, (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM taskqueue_delivery AS delivery
            WHERE delivery.endpoint_id = endpoint.id AND delivery.status = 'waiting'
            LIMIT %(limit)s
        ) AS waiting
    )
    FROM taskqueue_endpoint AS endpoint
""")


@dataclass(frozen=True, kw_only=True)
class ShownEndpoint:
    """An endpoint of webhooks."""

    id: int
    url: str
    description: str
    kinds: list[str] = about(
        f"Patterns of the kinds of events that it receives; empty: all. The kinds are "
        f"{', '.join(ALL_KINDS)}."
    )
    names: list[str] = about("Patterns of names of tasks and workflows; empty: all.")
    queues: list[str] = about("Patterns of names of queues; empty: all.")
    include: list[str] = about(
        "What a message holds beside the thin body: `error`, its class and message.",
        choices=list(Include),
    )
    is_enabled: bool
    disabled_for: str = about(
        "Why it is disabled: a person did it, it answered 410, or it failed for five days; empty: "
        "it is enabled.",
        choices=[each.value for each in DisabledFor],
    )
    failing_since: datetime | None = about("The first failure since the last success.")
    succeeded_at: datetime | None = about("When a delivery succeeded last, to a minute.")
    rotates_until: datetime | None = about(
        "Until when the secret before the last rotation signs too; null: it does not."
    )
    waiting: int = about("Deliveries that wait to be sent, or sent again, counted up to a cap.")
    is_waiting_capped: bool = about("Whether there may be more.")
    created_by: str
    created_at: datetime
    changed_at: datetime

    @property
    def waiting_count(self) -> Count:
        """The number of waiting deliveries, formatted."""
        return Count(self.waiting, self.is_waiting_capped)

    @property
    def state(self) -> str:
        """Its state as one word."""
        if not self.is_enabled:
            return "disabled"
        return "active" if self.failing_since is None else "failing"

    @property
    def since(self) -> str:
        """The time since which it fails, for sentences."""
        return "" if self.failing_since is None else f"{self.failing_since:%F %T} UTC"


@dataclass(frozen=True, kw_only=True)
class ShownDelivery:
    """A delivery and its last attempt."""

    id: UUID = about("Sent as `webhook-id`, as `msg_` and its 32 digits.")
    seq: int | None = about(
        "The number of the event; null: a test, or the message of an alert rule."
    )
    kind: str = about("The kind of the event, or `webhook.test`.")
    status: str = about(choices=[each.value for each in DeliveryStatus])
    attempts: int = about("Attempts since it was enqueued, or redelivered last.")
    answer_status: int | None = about("The status of the last answer; null: there was none.")
    error: str = about("Why there was no answer.")
    milliseconds: int | None = about("How long the last attempt took.")
    answer: str = about("The beginning of the last answer, up to 1 KiB.")
    attempted_at: datetime | None
    next_at: datetime | None = about(
        "When it is tried next, unless it is late; null: it does not wait, or its task has ended "
        "without it, such as by a cancel: redeliver it then."
    )
    created_at: datetime
    task_id: UUID = about("The task that sends it, or sent it last.")
    payload: dict[str, Any] = about(
        "The body, but for the address and the error that are added when it is sent."
    )


def endpoint_rows() -> Any:
    """Return the rows of all endpoints, in the order of their ids."""
    return Endpoint.objects.using(database_alias()).order_by("id")


def read_endpoints(*, limit: int = MOST_ENDPOINTS) -> list[ShownEndpoint]:
    """Return the endpoints in the order of their ids."""
    return shown_endpoints(endpoint_rows()[:limit])


def shown_endpoints(rows: Iterable[Any]) -> list[ShownEndpoint]:
    """Make the read models of these rows."""
    found = list(rows)
    if not found:
        return []
    moment = now()
    waiting = dict(read(WAITING, limit=CAP + 1))
    return [_shown(row, moment, waiting.get(row.pk, 0)) for row in found]


def delivery_rows(endpoint: Any) -> Any:
    """Return the rows of an endpoint's deliveries."""
    return Delivery.objects.using(database_alias()).filter(endpoint_id=endpoint.pk)


def shown_deliveries(rows: Iterable[Any]) -> list[ShownDelivery]:
    """Make the read models of these rows."""
    found = list(rows)
    waiting = [row.task_id for row in found if row.status == DeliveryStatus.WAITING]
    tasks = Task.objects.using(database_alias()).filter(id__in=waiting).exclude(status__in=FINISHED)
    due = dict(tasks.values_list("id", "run_after")) if waiting else {}
    return [from_row(ShownDelivery, row, next_at=due.get(row.task_id)) for row in found]


def _shown(row: Any, moment: datetime, waiting: int) -> ShownEndpoint:
    is_rotating = row.previous_until is not None and moment < row.previous_until
    return from_row(
        ShownEndpoint,
        row,
        rotates_until=row.previous_until if is_rotating else None,
        waiting=min(waiting, CAP),
        is_waiting_capped=waiting > CAP,
    )
