"""Enqueue by hand: as code does, and audited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.core.uuid7 import uuid7_hexes
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, Person, audit, person
from taskqueue.engine.control.copying import idempotent_id
from taskqueue.engine.dialect import dialect_for
from taskqueue.exceptions import DuplicateTask, EnqueuedBefore
from taskqueue.results.enqueueing import SAME_KEY, enqueue, enqueue_many


def enqueue_by_hand(
    definition: BaseDefinition[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    by: object = "",
    reason: str = "",
    new_id: UUID | None = None,
) -> Any:
    """Enqueue a task of the definition; the `TaskResult`. The audit tells nothing of arguments.

    `new_id` is the new task's; asked for twice, it is enqueued once. Raises as
    `BaseDefinition.enqueue` does, `EnqueuedBefore` the second time, and writes nothing then.
    """
    connection = project_connection()
    with idempotent_id(connection, new_id) as task_id:
        try:
            result = enqueue(definition, args, kwargs, task_id=task_id)
        except DuplicateTask as error:
            _refuse_itself(error.result, new_id, definition)
            raise
        if not result.created:
            _refuse_itself(result, new_id, definition)
        _tell(connection, definition, [result], person(by, reason))
    return result


Wish = tuple[BaseDefinition[..., Any], Sequence[Any], Mapping[str, Any]]
"""A definition with its options, and arguments."""


def enqueue_batches_by_hand(
    wishes: Sequence[Wish], batches: Iterable[Sequence[int]], *, by: object = "", reason: str = ""
) -> list[Any]:
    """Enqueue them, all or none; their handles, in their order, in which they are also run.

    `batches` holds their places, in the order in which they are written: those of each by one
    statement, where they are plain. They must have one definition with the same options.
    """
    connection = project_connection()
    found: dict[int, Any] = {}
    with atomic(using=connection.alias):
        # One moment and rising ids: they stand in line as they were asked for.
        at, ids = dialect_for(connection).now(connection), uuid7_hexes(len(wishes))
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
            _tell(connection, definition, results, person(by, reason))
            found |= zip(places, results, strict=True)
    return [found[place] for place in range(len(wishes))]


def _placed(error: DuplicateTask, places: Sequence[int], ids: Sequence[str]) -> DuplicateTask:
    """The same, with its place among all. Nobody could find a holder that is undone with it."""
    place = None if error.place is None else places[error.place]
    if getattr(error.result, "id", None) not in {UUID(each) for each in ids}:
        return DuplicateTask(str(error), error.result, place=place)
    return DuplicateTask(SAME_KEY, place=place)


def _tell(
    connection: BaseDatabaseWrapper,
    definition: BaseDefinition[..., Any],
    results: Sequence[Any],
    who: Person,
) -> None:
    """Audit what is new, and what was replaced in a task that holds the unique key."""
    where = f"{definition.name} on {definition.options.queue_name}"
    acts = [Act(str(each.id), detail=where) for each in results if each.created]
    acts += [
        Act(str(each.id), each.status, "arguments and time replaced")
        for each in results
        if each.updated
    ]
    audit(connection, "task", "enqueue", acts, person=who)


def _refuse_itself(holder: Any, new_id: UUID | None, definition: BaseDefinition[..., Any]) -> None:
    """The holder of a unique key may be what was enqueued the first time."""
    if new_id is not None and holder.id == new_id:
        raise EnqueuedBefore(new_id, definition.name)
