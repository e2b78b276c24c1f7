"""Enqueue copies of tasks: duplicates, and retries with other arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue import tracing
from taskqueue.core.refusals import refusal as _
from taskqueue.core.uuid7 import uuid7_hex, uuid7_hexes
from taskqueue.declarations.call_differences import Call
from taskqueue.declarations.option_kinds import LARGEST_METADATA
from taskqueue.declarations.payload import encode
from taskqueue.declarations.placement import Placement
from taskqueue.engine.control.audit import Act
from taskqueue.engine.control.calls import given_call, placed_by, placement_like, texts_of
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.mutable_options import apply_changes, check_changes
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.payloads import Payload
from taskqueue.engine.sessions import take_write_lock
from taskqueue.engine.specs import OPTION_COLUMNS, EnqueueSpec
from taskqueue.exceptions import EnqueuedBefore, TaskQueueError
from taskqueue.models import Task

# Stored arguments were measured at their enqueue; the setting may have changed since.
LARGEST = 2**31


@contextmanager
def enqueued_once(connection: BaseDatabaseWrapper, new_id: UUID | None) -> Iterator[None]:
    """Open a transaction that may enqueue a task with that id, if one is given.

    Raises `EnqueuedBefore` if a task with that id exists or is enqueued at the same time.
    """
    try:
        with atomic(using=connection.alias):
            if new_id is not None:
                take_write_lock(connection)
                _refuse_second(connection, new_id)
            yield
    except IntegrityError:
        if new_id is not None:
            _refuse_second(connection, new_id)
        raise


def _refuse_second(connection: BaseDatabaseWrapper, new_id: UUID) -> None:
    names = Task.objects.using(connection.alias).filter(id=new_id).values_list("name", flat=True)
    for name in names:
        raise EnqueuedBefore(new_id, name)


def duplicate_each(
    selection: Selection, *, new_id: UUID | None = None, **changes: Any
) -> dict[UUID, UUID]:
    """Duplicate tasks, with changes to their options. Return the new ids by the old ones.

    `new_id` is the id of the new task if one is duplicated. The old tasks are only read.
    """
    terms = check_changes(changes) if changes else {}
    new_ids = uuid7_hexes(len(selection.ids)) if new_id is None else [new_id.hex]
    wanted = dict(zip(sorted(selection.ids), new_ids, strict=True))
    made: dict[UUID, UUID] = {}
    acts: list[Act] = []
    with enqueued_once(selection.connection, new_id):
        take_write_lock(selection.connection)
        tasks = selection.rows().filter(status__in=sorted(selection.statuses), step=None)
        for old in tasks.defer("return_value").order_by("id"):
            placement = placement_like(old, old.limits)
            texts = texts_of(Call(old.args, old.kwargs), limit=LARGEST)
            new = _enqueue_like(selection, old, wanted[old.id], texts, placement)
            made[old.id] = new
            acts.append(Act(str(old.id), old.status, f"as {new}"))
            acts.append(Act(str(new), detail=f"of {old.id}"))
        selection.audit("duplicate", acts)
        if terms:
            for task in selection.of(made.values()).rows():
                apply_changes(selection.connection, task, terms)
    return made


def retry_with_each(
    selection: Selection,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    new_id: UUID | None = None,
) -> dict[UUID, UUID]:
    """Enqueue a finished task anew with other arguments. Return the new id by the old one.

    The new task names the old one in `retry_of`, and has no unique key.
    """
    made: dict[UUID, UUID] = {}
    with enqueued_once(selection.connection, new_id):
        for old in selection.of(task.id for task in selection.locked()).rows().filter(step=None):
            call, definition = given_call(old, args, kwargs)
            texts = texts_of(call, definition)
            new_hex = uuid7_hex() if new_id is None else new_id.hex
            placement = placement_like(old, old.limits)
            if definition is not None and definition.limits is not None:
                placement = placed_by(definition, call, queue_name=old.queue_name, texts=texts)
            new = _enqueue_like(selection, old, new_hex, texts, placement)
            selection.of([new]).rows().update(retry_of_id=old.id)
            act = Act(str(old.id), before=old.status, detail=f"with other arguments, as {new}")
            selection.audit("retry", [act])
            made[old.id] = new
    return made


def _enqueue_like(
    selection: Selection,
    old: Task,
    new_hex: str,
    texts: tuple[str, str],
    placement: Placement | None,
) -> UUID:
    payload = Payload(new_hex, *texts, None, placement)
    connection = selection.connection
    if dialect_for(connection).insert(connection, spec_like(old), payload) is None:
        raise TaskQueueError(_("Task {task_id} exists already.", task_id=new_hex))
    return UUID(hex=new_hex)


def spec_like(old: Task) -> EnqueueSpec:
    """Return a spec with the options of that task."""
    values = {name: getattr(old, name) for name in OPTION_COLUMNS if name != "restart"}
    if old.broadcast:
        values |= {"workers": 1, "worker_names": None}
    elif old.worker_names is not None:
        values["worker_names"] = tuple(old.worker_names)
    metadata = tracing.relinked(old.metadata)
    return EnqueueSpec(
        name=old.name,
        options=json.dumps(old.options, separators=(",", ":")) if old.options else "{}",
        metadata=encode(metadata, limit=2 * LARGEST_METADATA, what="metadata"),
        **values,
    )
