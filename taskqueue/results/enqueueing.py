"""Enqueue tasks of a definition, and return handles on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from taskqueue import signals, tracing
from taskqueue.core.lazy import LazySequence
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.declarations.arguments import Call
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.engine import enqueue as engine
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.copying import enqueued_once
from taskqueue.engine.making_specs import spec_of, traced
from taskqueue.engine.payloads import Enqueued, Payload
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.exceptions import DuplicateTask, InvalidTask
from taskqueue.results.handle import TaskResult, get_result
from taskqueue.results.payloads import payload_of, payloads_of

R = TypeVar("R")


def enqueue(
    definition: BaseDefinition[Any, R], args: Any, kwargs: Any, *, task_id: str = ""
) -> TaskResult[R]:
    """Write one task of a definition, with this id if one is given. See `Definition.enqueue`."""
    own = definition.options.id
    payload = payload_of(definition, own.hex if own else task_id or uuid7_hex(), args, kwargs)
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
    payloads = payloads_of(definition, calls, task_ids)
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


def _handle(
    definition: BaseDefinition[Any, R], enqueued: Enqueued, payload: Payload
) -> TaskResult[R]:
    """Return the handle on the new task, or on the task that holds the key."""
    own = enqueued.name in (None, definition.name)
    result = TaskResult(enqueued, definition if own else registry.find(str(enqueued.name)))
    if enqueued.created:
        result.know_arguments(payload.args, payload.kwargs)
    return result
