"""Enqueue tasks on behalf of people: with audit entries, and once for each new id."""

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
from taskqueue.engine.control.copying import enqueued_once
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
