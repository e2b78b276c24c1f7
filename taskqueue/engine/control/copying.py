"""Enqueue tasks like others: duplicates, and retries with other arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.conf import get_settings
from taskqueue.core.uuid7 import uuid7_hex, uuid7_hexes
from taskqueue.declarations.definition import registry
from taskqueue.declarations.option_kinds import LARGEST_METADATA
from taskqueue.declarations.payload import encode
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.control.locking import Statuses, lock_first, locked
from taskqueue.engine.control.mutable_options import apply_changes, check_changes
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.specs import OPTION_COLUMNS, EnqueueSpec, Payload
from taskqueue.exceptions import EnqueuedBefore, InvalidArguments, TaskQueueError
from taskqueue.models import Task

LARGEST = 2**31
"""Stored arguments were measured at their enqueue; the setting may have changed since."""


@contextmanager
def idempotent_id(connection: BaseDatabaseWrapper, new_id: UUID | None) -> Iterator[str]:
    """A transaction that may enqueue a task of that id, or of a new one; the id as it is stored.

    Raises `EnqueuedBefore` where there is one, also where somebody enqueues it at the same time.
    """
    if new_id is None:
        with atomic(using=connection.alias):
            yield uuid7_hex()
        return
    try:
        with atomic(using=connection.alias):
            lock_first(connection)
            _refuse_second(connection, new_id)
            yield new_id.hex
    except IntegrityError:
        _refuse_second(connection, new_id)
        raise


def _refuse_second(connection: BaseDatabaseWrapper, new_id: UUID) -> None:
    names = Task.objects.using(connection.alias).filter(id=new_id).values_list("name", flat=True)
    for name in names:
        raise EnqueuedBefore(new_id, name)


def duplicate_one(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses,
    person: Person,
    new_id: UUID | None = None,
    **changes: Any,
) -> dict[UUID, UUID]:
    """Duplicate a task, with changes to its options; the id of the new one, by the old one."""
    terms = check_changes(changes) if changes else {}
    with idempotent_id(connection, new_id) as made_id:
        made = _duplicates(connection, dict.fromkeys(ids, made_id), statuses, person)
        if terms:
            for new in Task.objects.using(connection.alias).filter(id__in=made.values()):
                apply_changes(connection, new, terms)
    return made


def duplicate_each(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses,
    person: Person,
    skip_locked: bool = False,
) -> dict[UUID, UUID]:
    """Duplicate those of the tasks that have these statuses; the new ids, by the old ones.

    Tasks are only read, so that `skip_locked` makes no difference.
    """
    wanted = dict(zip(sorted(ids), uuid7_hexes(len(ids)), strict=True))
    return _duplicates(connection, wanted, statuses, person)


def _duplicates(
    connection: BaseDatabaseWrapper, wanted: Mapping[UUID, str], statuses: Statuses, person: Person
) -> dict[UUID, UUID]:
    """Enqueue a task like each; `wanted` holds the new ids."""
    lock_first(connection)
    rows = Task.objects.using(connection.alias).filter(
        id__in=list(wanted), status__in=sorted(statuses)
    )
    made: dict[UUID, UUID] = {}
    acts: list[Act] = []
    for old in rows.defer("return_value").order_by("id"):
        texts = (
            encode(old.args, limit=LARGEST, what="args"),
            encode(old.kwargs, limit=LARGEST, what="kwargs"),
        )
        made[old.id] = _enqueue_like(connection, old, Payload(wanted[old.id], *texts, None))
        acts.append(Act(str(old.id), old.status, f"as {made[old.id]}"))
        acts.append(Act(str(made[old.id]), detail=f"of {old.id}"))
    audit(connection, "task", "duplicate", acts, person=person)
    return made


def retry_with_one(
    connection: BaseDatabaseWrapper,
    ids: Sequence[UUID],
    *,
    statuses: Statuses,
    person: Person,
    new_id: UUID | None = None,
    **arguments: Any,
) -> dict[UUID, UUID]:
    """Enqueue a finished task anew with other `args` or `kwargs`; the new id, by the old one.

    The new task names the old one in `retry_of`, and holds no unique key.
    """
    args, kwargs = arguments.get("args"), arguments.get("kwargs")
    _check_kinds(args, kwargs)
    with idempotent_id(connection, new_id) as made_id:
        made: dict[UUID, UUID] = {}
        for task_id in [task.id for task in locked(connection, ids, statuses)]:
            old = Task.objects.using(connection.alias).get(id=task_id)
            texts = _encoded(
                old.name,
                old.args if args is None else args,
                old.kwargs if kwargs is None else kwargs,
            )
            new = _enqueue_like(connection, old, Payload(made_id, *texts, None))
            Task.objects.using(connection.alias).filter(id=new).update(retry_of_id=task_id)
            act = Act(str(task_id), before=old.status, detail=f"with other arguments, as {new}")
            audit(connection, "task", "retry", [act], person=person)
            made[task_id] = new
    return made


def _enqueue_like(connection: BaseDatabaseWrapper, old: Task, payload: Payload) -> UUID:
    if dialect_for(connection).insert(connection, spec_like(old), payload) is None:
        raise TaskQueueError(f"Task {payload.id} exists already.")
    return UUID(hex=payload.id)


def _check_kinds(args: object, kwargs: object) -> None:
    """Text is a sequence too, and a list of pairs makes a dict: neither is meant."""
    if args is not None and not isinstance(args, list | tuple):
        raise InvalidArguments(f"args must be a list or a tuple, not {type(args).__name__}.")
    if kwargs is None:
        return
    if not isinstance(kwargs, Mapping):
        raise InvalidArguments(
            f"kwargs must be a mapping of names to values, not {type(kwargs).__name__}."
        )
    for name in kwargs:
        if not isinstance(name, str):
            raise InvalidArguments(f"kwargs must have names as keys, not {name!r}.")


def _encoded(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, str]:
    """The arguments as they are stored, checked as at an enqueue."""
    definition = registry.find(name)
    if definition is not None:
        definition.signature.check(name, args, dict(kwargs))
    limit = get_settings().MAX_ARGUMENTS
    args_text = encode(list(args), limit=limit, what="args")
    return args_text, encode(dict(kwargs), limit=limit - len(args_text), what="kwargs")


def spec_like(old: Task) -> EnqueueSpec:
    """Return the spec of an enqueue with the options of that task."""
    values = {name: getattr(old, name) for name in OPTION_COLUMNS if name != "restart"}
    if old.broadcast:
        values |= {"workers": 1, "worker_names": None}
    elif old.worker_names is not None:
        values["worker_names"] = tuple(old.worker_names)
    return EnqueueSpec(
        name=old.name,
        options=json.dumps(old.options, separators=(",", ":")) if old.options else "{}",
        metadata=encode(old.metadata, limit=2 * LARGEST_METADATA, what="metadata"),
        **values,
    )
