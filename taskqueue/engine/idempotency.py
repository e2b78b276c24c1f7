"""Idempotency keys: a repeated request gets the response of the first one.

This follows the draft of an HTTP header field, draft-ietf-httpapi-idempotency-key-header-07.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet
from django.db.transaction import atomic

from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.transient_errors import OutOfSight
from taskqueue.exceptions import IdempotencyKeyReused
from taskqueue.models import IdempotencyKey

KEPT = timedelta(days=1)
TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The response to a request."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    # JSON.
    body: str = ""


def first_answer(
    connection: BaseDatabaseWrapper, *, actor: str, key: str, fingerprint: str
) -> Answer | None:
    """Return the answer to this key's first request. If the key is new, take it and return None.

    Runs in the transaction of the request's changes. A simultaneous request with the same key waits
    here until that transaction ends. Raises `IdempotencyKeyReused` for a different request.
    """
    keys = IdempotencyKey.objects.using(connection.alias)
    known = _taken(keys, actor=actor, key=key, fingerprint=fingerprint)
    if known is not None and known.created_at < dialect_for(connection).now(connection) - KEPT:
        # Workers delete expired keys too, but there may be no workers.
        keys.filter(id=known.id).delete()
        known = _taken(keys, actor=actor, key=key, fingerprint=fingerprint)
    if known is None:
        return None
    if known.fingerprint != fingerprint:
        raise IdempotencyKeyReused(
            "This Idempotency-Key came with another request, or other permissions, before."
        )
    return Answer(status=known.status, headers=known.headers, body=known.body)


def _taken(
    keys: QuerySet[IdempotencyKey], *, actor: str, key: str, fingerprint: str
) -> IdempotencyKey | None:
    """Take the key. Return its earlier row, if there is one. Raises `OutOfSight`."""
    for _ in range(TRIES):
        try:
            with atomic(using=keys.db):
                keys.create(actor=actor, key=key, fingerprint=fingerprint)
        except IntegrityError:
            # None if it was deleted meanwhile.
            if known := keys.filter(actor=actor, key=key).first():
                return known
        else:
            return None
    # Above READ COMMITTED, a row that was written after the transaction's snapshot is never found.
    raise OutOfSight("Another request has the same Idempotency-Key.")


def keep_answer(connection: BaseDatabaseWrapper, answer: Answer, *, actor: str, key: str) -> None:
    """Store the response to the first request of the key, in the transaction of its changes."""
    IdempotencyKey.objects.using(connection.alias).filter(actor=actor, key=key).update(
        status=answer.status, headers=answer.headers, body=answer.body
    )
