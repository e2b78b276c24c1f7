"""Duplicate: another task like one that there is, whatever became of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.uuid7 import uuid7_hexes
from taskqueue.declarations.payload import encode
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, Person, audit, person
from taskqueue.engine.control.lineage import spec_like
from taskqueue.engine.control.locking import (
    ALLOWED,
    Statuses,
    TaskId,
    id_of,
    status_of,
)
from taskqueue.engine.control.mutable_options import apply_terms, check_terms
from taskqueue.engine.control.once import once
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.specs import Payload
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Task

LARGEST = 2**31
"""What is stored was measured when it was enqueued; the setting may have changed since."""


def duplicate(
    task: TaskId,
    *,
    by: object = "",
    reason: str = "",
    new_id: UUID | None = None,
    **changes: Any,
) -> UUID:
    """Enqueue a task with the name, arguments and options of another; the id of the new one.

    It is due at once, has no unique key, no deadline and no schedule, and is no retry: only the
    audit of both ties them. `changes` are terms that `update` takes too, such as `queue_name` and
    `priority`. Where `new_id` is given, it is the new task's, and the second call with it raises
    `EnqueuedBefore`. Raises `TaskDoesNotExist` and `InvalidTask`.
    """
    task_id = id_of(task)
    terms = check_terms(changes) if changes else {}
    connection = project_connection()
    with once(connection, new_id) as made_id:
        made = _duplicates(connection, {task_id: made_id}, ALLOWED["duplicate"], person(by, reason))
        if task_id not in made:
            status_of(connection, task_id)
            raise TaskQueueError(f"Task {task_id} changed while it was read. Try it again.")
        if terms:
            new = Task.objects.using(connection.alias).get(id=made[task_id])
            apply_terms(connection, new, terms)
    return made[task_id]


def duplicate_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses = ALLOWED["duplicate"],
    person: Person,
    skip_locked: bool = False,
) -> list[UUID]:
    """Duplicate those of the tasks that have these statuses; those that it was done to.

    They are only read, so nobody is waited for, with `skip_locked` or without.
    """
    wanted = dict(zip(sorted(ids), uuid7_hexes(len(ids)), strict=True))
    return list(_duplicates(connection, wanted, statuses, person))


def _duplicates(
    connection: BaseDatabaseWrapper, wanted: Mapping[UUID, str], statuses: Statuses, person: Person
) -> dict[UUID, UUID]:
    """The new ids, by those of the tasks that they are like; `wanted` says which they are."""
    ids = list(wanted)
    take_write_lock(connection)
    rows = Task.objects.using(connection.alias).filter(id__in=ids, status__in=sorted(statuses))
    made: dict[UUID, UUID] = {}
    acts: list[Act] = []
    for old in rows.defer("return_value").order_by("id"):
        new_id = _enqueue_like(connection, old, wanted[old.id])
        made[old.id] = new_id
        acts.append(Act(str(old.id), old.status, f"as {new_id}"))
        acts.append(Act(str(new_id), detail=f"of {old.id}"))
    audit(connection, "task", "duplicate", acts, person=person)
    return made


def _enqueue_like(connection: BaseDatabaseWrapper, old: Task, new_id: str) -> UUID:
    texts = (
        encode(old.args, limit=LARGEST, what="args"),
        encode(old.kwargs, limit=LARGEST, what="kwargs"),
    )
    payload = Payload(new_id, *texts, None)
    if dialect_for(connection).insert(connection, spec_like(old), payload) is None:
        raise TaskQueueError(f"Task {payload.id} exists already.")
    return UUID(hex=payload.id)
