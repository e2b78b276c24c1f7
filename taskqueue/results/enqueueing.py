"""Enqueue: from a definition and its arguments to rows, and to handles on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from taskqueue import signals
from taskqueue.core.uuid7 import uuid7_hex, uuid7_hexes
from taskqueue.declarations.definition import BaseDefinition, Call, registry
from taskqueue.engine import enqueue as engine
from taskqueue.engine.specs import Enqueued, Payload, spec_of
from taskqueue.exceptions import DuplicateTask, InvalidArguments
from taskqueue.results.handle import TaskResult, get_result

R = TypeVar("R")


def enqueue(
    definition: BaseDefinition[Any, R], args: Any, kwargs: Any, *, task_id: str = ""
) -> TaskResult[R]:
    """Write one task of a definition, of this id if one is given. See `BaseDefinition.enqueue`."""
    payload = Payload(task_id or uuid7_hex(), *definition.encode(args, kwargs))
    with _telling_of_holder():
        enqueued = engine.enqueue(
            spec_of(definition), payload, on_duplicate=definition.options.on_duplicate
        )
    result = _handle(definition, enqueued, payload)
    _tell_enqueued(definition, [result])
    return result


def enqueue_many(
    definition: BaseDefinition[Any, R],
    calls: Iterable[Call],
    *,
    task_ids: Sequence[str] | None = None,
    at: datetime | None = None,
) -> list[TaskResult[R]]:
    """Write many tasks of a definition. See `BaseDefinition.enqueue_many`.

    Of these ids and as of that moment, if they are given: then those of several definitions are
    run in one order.
    """
    payloads = _payloads(definition, calls, task_ids)
    spec = spec_of(definition)
    with _telling_of_holder(payloads):
        enqueued = engine.enqueue_many(
            spec if at is None else replace(spec, at=at),
            payloads,
            on_duplicate=definition.options.on_duplicate,
        )
    results = [
        _handle(definition, each, payload) for each, payload in zip(enqueued, payloads, strict=True)
    ]
    _tell_enqueued(definition, results)
    return results


SAME_KEY = "Another of these tasks has the same unique key."


@contextmanager
def _telling_of_holder(many: Sequence[Payload] = ()) -> Iterator[None]:
    """Let a `DuplicateTask` carry the holder's result in place of its id, and its place."""
    try:
        yield
    except DuplicateTask as duplicate:
        ids = [UUID(each.id) for each in many]
        wanting = (
            place
            for place, each in enumerate(many)
            if each.unique_key == duplicate.unique_key and ids[place] != duplicate.result
        )
        duplicate.place = next(wanting, None)
        if duplicate.result in ids:  # Undone with all others: nobody could find it.
            raise DuplicateTask(SAME_KEY, place=duplicate.place) from None
        duplicate.result = get_result(cast(UUID, duplicate.result))
        raise


def _tell_enqueued(
    definition: BaseDefinition[Any, Any], results: Sequence[TaskResult[Any]]
) -> None:
    """Send the signal, from the registered definition, whatever `.using()` made of it."""
    if not signals.task_enqueued.receivers:
        return
    sender = registry.find(definition.name) or definition
    for result in results:
        if result.created or result.updated:
            signals.task_enqueued.send(sender, task_result=result)


def _payloads(
    definition: BaseDefinition[Any, Any], calls: Iterable[Call], task_ids: Sequence[str] | None
) -> Sequence[Payload]:
    encode: Callable[[Any, Any], tuple[str, str, str | None]] = definition.encode
    encoded = [encode(tuple(args), kwargs) for args, kwargs in map(_checked, calls)]
    ids = uuid7_hexes(len(encoded)) if task_ids is None else task_ids
    return [Payload(id, *each) for id, each in zip(ids, encoded, strict=True)]


def _checked(call: Call) -> Call:
    """The call, if it is a pair of arguments. Raises `InvalidArguments`."""
    if isinstance(call, tuple | Sequence) and len(call) == 2:
        args, kwargs = call
        if isinstance(kwargs, dict | Mapping) and not isinstance(args, str | bytes | dict):
            return call
    # Not its text: arguments may be secret.
    size = f" of {len(call)}" if isinstance(call, Sized) else ""
    raise InvalidArguments(
        "Each call of enqueue_many is a pair of positional and keyword arguments, such as "
        f"((42,), {{}}); this one is of type {type(call).__name__}{size}."
    )


def _handle(
    definition: BaseDefinition[Any, R], enqueued: Enqueued, payload: Payload
) -> TaskResult[R]:
    """The handle on what was written, or on the holder of the key, whose task that may be."""
    own = enqueued.name in (None, definition.name)
    result = TaskResult(enqueued, definition if own else registry.find(str(enqueued.name)))
    if enqueued.created:
        result.know_arguments(payload.args, payload.kwargs)
    return result
