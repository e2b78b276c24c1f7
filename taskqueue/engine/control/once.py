"""Once: what is enqueued by hand under an id that was given out before, is there once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.engine.sessions import take_write_lock
from taskqueue.exceptions import EnqueuedBefore
from taskqueue.models import Task


@contextmanager
def once(connection: BaseDatabaseWrapper, new_id: UUID | None) -> Iterator[str]:
    """A transaction that may enqueue a task of that id, or of a new one; the id as it is stored.

    Raises `EnqueuedBefore` where there is one, also where somebody enqueues it at the same time.
    """
    if new_id is None:
        with atomic(using=connection.alias):
            yield uuid7_hex()
        return
    try:
        with atomic(using=connection.alias):
            take_write_lock(connection)
            _refuse_second(connection, new_id)
            yield new_id.hex
    except IntegrityError:
        _refuse_second(connection, new_id)
        raise


def _refuse_second(connection: BaseDatabaseWrapper, new_id: UUID) -> None:
    names = Task.objects.using(connection.alias).filter(id=new_id).values_list("name", flat=True)
    for name in names:
        raise EnqueuedBefore(new_id, name)
