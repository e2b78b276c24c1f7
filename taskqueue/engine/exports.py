"""Limit how many exports run at a time: in total, per user, and per web server process."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from uuid import UUID, uuid4

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Export

# The number of exports that run at a time, in all processes together.
MOST = 2
# How long a place stays taken if it is not renewed.
KEPT = timedelta(seconds=60)


def begin_export(connection: BaseDatabaseWrapper, *, actor: str) -> UUID | None:
    """Take a place. Return None if all are taken, or one by this user or in this process."""
    process = f"{socket.gethostname()}:{os.getpid()}"
    rows = Export.objects.using(connection.alias)
    with atomic(using=connection.alias):
        # Begin with a write: on SQLite, no other export can then begin before this transaction
        # ends.
        rows.bulk_create([Export(number=n) for n in range(1, MOST + 1)], ignore_conflicts=True)
        places = list(rows.select_for_update().filter(number__lte=MOST).order_by("number"))
        now = dialect_for(connection).now(connection)
        taken = [place for place in places if place.expires_at and place.expires_at > now]
        if any(place.actor == actor or place.process == process for place in taken):
            return None
        free = next((place for place in places if place not in taken), None)
        if free is None:
            return None
        token = uuid4()
        rows.filter(number=free.number).update(
            token=token, actor=actor, process=process, expires_at=now + KEPT
        )
        return token


def renew_export(connection: BaseDatabaseWrapper, token: UUID) -> bool:
    """Keep the place for longer. Return False if another export has taken it."""
    until = dialect_for(connection).now(connection) + KEPT
    rows = Export.objects.using(connection.alias).filter(token=token)
    return bool(rows.update(expires_at=until))


def end_export(connection: BaseDatabaseWrapper, token: UUID) -> None:
    """Release the place."""
    rows = Export.objects.using(connection.alias).filter(token=token)
    rows.update(token=None, actor="", process="", expires_at=None)
