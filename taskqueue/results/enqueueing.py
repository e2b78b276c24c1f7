"""Enqueue tasks of a definition, and return handles on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue import signals, tracing
from taskqueue.core.lazy import LazySequence
from taskqueue.core.uuid7 import uuid7_hex, uuid7_hexes
from taskqueue.declarations.arguments import Call, checked_call
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.engine import enqueue as engine
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, Person, audit, person
from taskqueue.engine.control.copying import enqueued_once
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.specs import Enqueued, EnqueueSpec, Payload, spec_of, traced
from taskqueue.exceptions import DuplicateTask, EnqueuedBefore, InvalidTask
from taskqueue.results.handle import TaskResult, get_result

R = TypeVar("R")


def enqueue(
    definition: BaseDefinition[Any, R], args: Any, kwargs: Any, *, task_id: str = ""
) -> TaskResult[R]:
    """Write one task of a definition, with this id if one is given. See `Definition.enqueue`."""
    own = definition.options.id
    payload = _payload(definition, own.hex if own else task_id or uuid7_hex(), args, kwargs)
    if tracing.active is None:
        result = _write(definition, spec_of(definition), payload)
    else:
        with tracing.active.sending(definition.options.queue_name, definition.name) as span:
            result = _write(definition, traced(spec_of(definition)), payload)
            span.set_attribute("messaging.message.id", str(result.id))
            span.set_attribute("taskqueue.created", result.created)
    _send_enqueued(definition, [result])
    return result


def _write(
    definition: BaseDefinition[Any, R], spec: EnqueueSpec, payload: Payload
) -> TaskResult[R]:
    on_duplicate, own = definition.options.on_duplicate, definition.options.id
    try:
        if own is None:
            enqueued = engine.enqueue(spec, payload, on_duplicate=on_duplicate)
        else:
            with enqueued_once(project_connection(), own):
                enqueued = engine.enqueue(spec, payload, on_duplicate=on_duplicate)
    except DuplicateTask as duplicate:
        _name_holder(duplicate, [])
        raise
    return _handle(definition, enqueued, payload)


def enqueue_many(
    definition: BaseDefinition[Any, R],
    calls: Iterable[Call],
    *,
    task_ids: Sequence[str] | None = None,
    at: datetime | None = None,
) -> LazySequence[TaskResult[R]]:
    """Write many tasks of a definition. See `Definition.enqueue_many`.

    `task_ids` and `at` let tasks of several definitions run in one order.
    """
    own = definition.options.id
    if own is not None:
        calls, task_ids = list(calls), [own.hex]
        if len(calls) != 1:
            raise InvalidTask(f"id= names one task, and these are {len(calls)}. Leave it out.")
    payloads = _payloads(definition, calls, task_ids)
    if tracing.active is None:
        enqueued = _write_many(definition, spec_of(definition), payloads, at)
    else:
        queue_name, name = definition.options.queue_name, definition.name
        with tracing.active.sending(queue_name, name, count=len(payloads)):
            enqueued = _write_many(definition, traced(spec_of(definition)), payloads, at)
    results = LazySequence(
        len(payloads), lambda place: _handle(definition, enqueued[place], payloads[place])
    )
    _send_enqueued(definition, results)
    return results


def _write_many(
    definition: BaseDefinition[Any, Any],
    spec: EnqueueSpec,
    payloads: Sequence[Payload],
    at: datetime | None,
) -> Sequence[Enqueued]:
    if at is not None:
        spec = replace(spec, at=at)
    on_duplicate, own = definition.options.on_duplicate, definition.options.id
    try:
        if own is None:
            return engine.enqueue_many(spec, payloads, on_duplicate=on_duplicate)
        with enqueued_once(project_connection(), own):
            return engine.enqueue_many(spec, payloads, on_duplicate=on_duplicate)
    except DuplicateTask as duplicate:
        _name_holder(duplicate, payloads)
        raise


SAME_KEY = "Another of these tasks has the same unique key."


def _name_holder(duplicate: DuplicateTask, many: Sequence[Payload]) -> None:
    """Give a `DuplicateTask` the holder's result instead of its id, and the call's place.

    Raises another one where the holder is one of these tasks.
    """
    ids = [UUID(payload.id) for payload in many]
    refused = (
        place
        for place, payload in enumerate(many)
        if payload.unique_key == duplicate.unique_key and ids[place] != duplicate.result
    )
    duplicate.place = next(refused, None)
    if duplicate.result in ids:  # It is rolled back too: nobody could find it.
        raise DuplicateTask(SAME_KEY, place=duplicate.place) from None
    duplicate.result = get_result(cast(UUID, duplicate.result))


def _send_enqueued(
    definition: BaseDefinition[Any, Any], results: Sequence[TaskResult[Any]]
) -> None:
    """Send the signal, with the registered definition as sender, not a copy by `.using()`."""
    if not signals.task_enqueued.receivers:
        return
    sender = registry.find(definition.name) or definition
    for result in results:
        if result.created or result.updated:
            signals.task_enqueued.send(sender, task_result=result)


def _payloads(
    definition: BaseDefinition[Any, Any], calls: Iterable[Call], task_ids: Sequence[str] | None
) -> Sequence[Payload]:
    if definition.limits is not None:
        checked = [(tuple(args), kwargs) for args, kwargs in map(checked_call, calls)]
        ids = uuid7_hexes(len(checked)) if task_ids is None else task_ids
        return [
            _payload(definition, id, args, kwargs)
            for id, (args, kwargs) in zip(ids, checked, strict=True)
        ]
    encode: Callable[[Any, Any], tuple[str, str, str | None]] = definition.encode
    encoded = [encode(tuple(args), kwargs) for args, kwargs in map(checked_call, calls)]
    ids = uuid7_hexes(len(encoded)) if task_ids is None else task_ids
    return [Payload(id, *texts) for id, texts in zip(ids, encoded, strict=True)]


def _payload(definition: BaseDefinition[Any, Any], id: str, args: Any, kwargs: Any) -> Payload:
    """Return one task's payload, with what limits it."""
    texts = definition.encode(args, kwargs)
    if definition.limits is None:
        return Payload(id, *texts)
    return Payload(id, *texts, definition.place(args, kwargs, stored=texts[:2]))


def _handle(
    definition: BaseDefinition[Any, R], enqueued: Enqueued, payload: Payload
) -> TaskResult[R]:
    """Return the handle on the new task, or on the task that holds the key."""
    own = enqueued.name in (None, definition.name)
    result = TaskResult(enqueued, definition if own else registry.find(str(enqueued.name)))
    if enqueued.created:
        result.know_arguments(payload.args, payload.kwargs)
    return result


def enqueue_by_hand(
    definition: BaseDefinition[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    by: object = "",
    reason: str = "",
    new_id: UUID | None = None,
) -> Any:
    """Enqueue a task with an audit entry, and return the `TaskResult`. Arguments are not audited.

    `new_id` is the id of the new task, which is enqueued once: the second call with it raises
    `EnqueuedBefore` and writes nothing; the option `id` goes before it. Raises as
    `BaseDefinition.enqueue` does.
    """
    new_id = definition.options.id or new_id
    connection = project_connection()
    task_id = "" if new_id is None else new_id.hex
    with enqueued_once(connection, new_id):
        try:
            result = enqueue(definition, args, kwargs, task_id=task_id)
        except DuplicateTask as error:
            _refuse_itself(error.result, new_id, definition)
            raise
        if not result.created:
            _refuse_itself(result, new_id, definition)
        _audit(connection, definition, [result], person(by, reason))
    return result


# A definition with its options, and the arguments of a call.
Wish = tuple[BaseDefinition[..., Any], Sequence[Any], Mapping[str, Any]]


def enqueue_batches_by_hand(
    wishes: Sequence[Wish], batches: Iterable[Sequence[int]], *, by: object = "", reason: str = ""
) -> list[Any]:
    """Enqueue many tasks, all or none; return their handles in order, in which they also run.

    Each batch holds the places of tasks that one statement writes if they are plain. Their
    definition and options must be the same.
    """
    connection = project_connection()
    handles: dict[int, Any] = {}
    with atomic(using=connection.alias):
        # One moment and rising ids: they run in the order of the request.
        at, ids = dialect_for(connection).now(connection), uuid7_hexes(len(wishes))
        for place, (definition, *_) in enumerate(wishes):
            if definition.options.id is not None:
                ids[place] = definition.options.id.hex
        for places in batches:
            definition = wishes[places[0]][0]
            try:
                results = enqueue_many(
                    definition,
                    [wishes[place][1:] for place in places],
                    task_ids=[ids[place] for place in places],
                    at=at,
                )
            except DuplicateTask as error:
                raise _placed(error, places, ids) from None
            _audit(connection, definition, results, person(by, reason))
            handles |= zip(places, results, strict=True)
    return [handles[place] for place in range(len(wishes))]


def _placed(error: DuplicateTask, places: Sequence[int], ids: Sequence[str]) -> DuplicateTask:
    """Return the error with its place among all tasks; without a holder that is rolled back too."""
    place = None if error.place is None else places[error.place]
    if getattr(error.result, "id", None) not in {UUID(task_id) for task_id in ids}:
        return DuplicateTask(str(error), error.result, place=place)
    return DuplicateTask(SAME_KEY, place=place)


def _audit(
    connection: BaseDatabaseWrapper,
    definition: BaseDefinition[..., Any],
    results: Sequence[Any],
    who: Person,
) -> None:
    """Audit new tasks, and changed ones that hold the unique key."""
    where = f"{definition.name} on {definition.options.queue_name}"
    acts = [Act(str(result.id), detail=where) for result in results if result.created]
    acts += [
        Act(str(result.id), result.status, "published again: arguments, time, named options")
        for result in results
        if result.updated
    ]
    audit(connection, "task", "enqueue", acts, person=who)


def _refuse_itself(holder: Any, new_id: UUID | None, definition: BaseDefinition[..., Any]) -> None:
    """Raise `EnqueuedBefore` if the holder of the unique key is the task of the first call."""
    if new_id is not None and holder.id == new_id:
        raise EnqueuedBefore(new_id, definition.name)
