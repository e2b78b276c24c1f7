"""Outcomes of attempts to send webhooks, for the delivery's log and for its endpoint."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F
from django.db.transaction import atomic

from taskqueue.declarations.payload import storable
from taskqueue.engine.control.audit import person
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.webhooks.endpoints import disable
from taskqueue.engine.webhooks.sending import enqueue_telling
from taskqueue.models import Delivery, Endpoint
from taskqueue.models.webhook import LONGEST_ANSWER, DeliveryStatus, DisabledFor

MINUTE, HOUR = 60.0, 3600.0
# Seconds from a failed attempt to the next; after the last of them a delivery has failed.
DELAYS = (
    5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR,
)  # fmt: skip
# The share of a delay that is added at random, so that deliveries that failed together spread out.
JITTER = 0.2
# A longer `Retry-After` is cut to this.
LONGEST_RETRY_AFTER = 24 * HOUR
# An endpoint without a success for this long is disabled.
FAILING = timedelta(days=5)
# How precisely the row of an endpoint says when it last succeeded.
NOTED = timedelta(minutes=1)
GONE = 410
LONGEST_ERROR = 255


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt to send a delivery."""

    # The status of the answer; None if there was none, for the reason in `error`.
    status: int | None = None
    error: str = ""
    milliseconds: int
    answer: bytes = b""
    retry_after: str = ""

    @property
    def has_succeeded(self) -> bool:
        """Whether the receiver has accepted it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def words(self) -> str:
        """Return the outcome in words, without text from the receiver."""
        if self.status is None:
            return self.error
        return f"The receiver answered {self.status}."


@dataclass(frozen=True, kw_only=True)
class Next:
    """The result of an attempt: the end of the delivery, or the seconds until another try."""

    status: DeliveryStatus
    delay: float = 0.0


def record_attempt(
    connection: BaseDatabaseWrapper, delivery: Delivery, attempt: Attempt, *, task_id: UUID
) -> Next | None:
    """Record an attempt, and return what follows.

    Return None if the delivery no longer belongs to this task, because somebody has sent it again
    or disabled the endpoint. Locks the endpoint before the delivery, as the verbs do.
    """
    with atomic(using=connection.alias):
        take_write_lock(connection)
        endpoints = Endpoint.objects.using(connection.alias).filter(id=delivery.endpoint_id)
        now = dialect_for(connection).now(connection)
        endpoint = endpoints.first()
        if endpoint is not None and _is_news(endpoint, attempt, now):
            endpoint = endpoints.select_for_update().first()
        rows = Delivery.objects.using(connection.alias).filter(id=delivery.id, task_id=task_id)
        row = rows.filter(status=DeliveryStatus.WAITING).select_for_update().first()
        if row is None or endpoint is None:
            return None
        follows = _next(row.attempts + 1, attempt, now)
        rows.update(
            attempts=F("attempts") + 1,
            status=follows.status,
            answer_status=attempt.status,
            error=storable(attempt.error, limit=LONGEST_ERROR),
            milliseconds=attempt.milliseconds,
            answer=_text(attempt.answer),
            attempted_at=now,
        )
        if _is_news(endpoint, attempt, now):
            _note(connection, endpoint, attempt, now)
    return follows


def cancel_delivery(connection: BaseDatabaseWrapper, delivery: Delivery) -> None:
    """Cancel a waiting delivery whose endpoint was disabled before the delivery was inserted."""
    rows = Delivery.objects.using(connection.alias).filter(id=delivery.id)
    rows.filter(status=DeliveryStatus.WAITING).update(status=DeliveryStatus.CANCELLED)


def delay_after(attempts: int, retry_after: str, now: datetime) -> float:
    """Return the seconds until the next attempt; a `Retry-After` may lengthen them."""
    own = DELAYS[attempts - 1] * random.uniform(1, 1 + JITTER)  # noqa: S311
    return max(own, min(seconds_of_header(retry_after, now), LONGEST_RETRY_AFTER))


def seconds_of_header(text: str, now: datetime) -> float:
    """Return the seconds of a `Retry-After` header; 0 if it is not valid."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return 0.0
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


def _next(attempts: int, attempt: Attempt, now: datetime) -> Next:
    if attempt.has_succeeded:
        return Next(status=DeliveryStatus.DELIVERED)
    if attempt.status == GONE or attempts > len(DELAYS):
        return Next(status=DeliveryStatus.FAILED)
    delay = delay_after(attempts, attempt.retry_after, now)
    return Next(status=DeliveryStatus.WAITING, delay=delay)


def _is_news(endpoint: Endpoint, attempt: Attempt, now: datetime) -> bool:
    """Return whether the row of the endpoint has to change.

    It does not change with each success, because deliveries that end together would wait for each
    other.
    """
    if not attempt.has_succeeded or endpoint.failing_since is not None:
        return True
    return endpoint.succeeded_at is None or endpoint.succeeded_at < now - NOTED


def _note(
    connection: BaseDatabaseWrapper, endpoint: Endpoint, attempt: Attempt, now: datetime
) -> None:
    """Record since when the endpoint fails; disable it if it is gone or has failed for days."""
    rows = Endpoint.objects.using(connection.alias).filter(id=endpoint.pk)
    if attempt.has_succeeded:
        rows.update(failing_since=None, succeeded_at=now)
        return
    rows.filter(failing_since=None).update(failing_since=now)
    since = endpoint.failing_since or now
    is_gone = attempt.status == GONE
    if endpoint.is_enabled and (is_gone or since <= now - FAILING):
        why = DisabledFor.GONE if is_gone else DisabledFor.FAILING
        reason = attempt.words if is_gone else f"No delivery has succeeded since {since:%F %T} UTC."
        disable(connection, endpoint, why, person=person("taskqueue", reason))
        enqueue_telling(connection, endpoint.pk)


def _text(answer: bytes) -> str:
    """Return the beginning of an answer as text that a database can store."""
    text = answer[:LONGEST_ANSWER].decode("utf-8", "replace")
    return storable(text, limit=LONGEST_ANSWER)
