"""Idempotency keys: a repeated request gets the response of the first one.

After the draft of an HTTP header field for it, draft-ietf-httpapi-idempotency-key-header-07.
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
    """Return the answer to this key's first request; take the key and return None if it is new.

    Stands in the transaction of what the request does. Whoever sends the same key at the same time
    waits here until that has ended. Raises `IdempotencyKeyReused` for another request.
    """
    keys = IdempotencyKey.objects.using(connection.alias)
    known = _taken(keys, actor=actor, key=key, fingerprint=fingerprint)
    if known is not None and known.created_at < dialect_for(connection).now(connection) - KEPT:
        # Workers delete these too, where there are any.
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
    """Take the key; who had it, if somebody had. Raises `OutOfSight`."""
    for _ in range(TRIES):
        try:
            with atomic(using=keys.db):
                keys.create(actor=actor, key=key, fingerprint=fingerprint)
        except IntegrityError:
            # None where it was deleted meanwhile.
            if known := keys.filter(actor=actor, key=key).first():
                return known
        else:
            return None
    # Above READ COMMITTED, one that came after the transaction's snapshot is never found.
    raise OutOfSight("Another request has the same Idempotency-Key.")


def keep_answer(connection: BaseDatabaseWrapper, answer: Answer, *, actor: str, key: str) -> None:
    """Keep what the first request of the key came to, in the transaction of what it did."""
    IdempotencyKey.objects.using(connection.alias).filter(actor=actor, key=key).update(
        status=answer.status, headers=answer.headers, body=answer.body
    )
