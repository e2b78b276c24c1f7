"""Retry with edited arguments: a new task that knows which one it was made from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from taskqueue.conf import get_settings
from taskqueue.declarations.definition import registry
from taskqueue.declarations.option_kinds import LARGEST_METADATA
from taskqueue.declarations.payload import encode
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.control.locking import ALLOWED, TaskId, id_of, locked, status_of
from taskqueue.engine.control.once import once
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.specs import OPTION_COLUMNS, EnqueueSpec, Payload
from taskqueue.exceptions import InvalidArguments, TaskQueueError, TransitionRefused
from taskqueue.models import Task


def retry_with(
    task: TaskId,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    by: object = "",
    reason: str = "",
    new_id: UUID | None = None,
) -> UUID:
    """Enqueue a finished task anew with other arguments; the id of the new task.

    None leaves those arguments as they are. The old task stays as it is, the new one has its
    options and names it in `retry_of`; it holds no unique key. Where `new_id` is given, it is the
    new task's, and the second call with it raises `EnqueuedBefore`. Raises `TaskDoesNotExist`,
    `TransitionRefused` for a task that is not finished, `ArgumentsDoNotBind` where this process
    knows the definition, and `InvalidArguments`.
    """
    task_id = id_of(task)
    _check_kinds(args, kwargs)
    who = person(by, reason)
    connection = project_connection()
    with once(connection, new_id) as made_id:
        if not locked(connection, [task_id], ALLOWED["retry"]):
            status = status_of(connection, task_id)
            raise TransitionRefused(f"Task {task_id} is {status}; only a finished one is retried.")
        old = Task.objects.using(connection.alias).get(id=task_id)
        texts = _encoded(
            old.name, old.args if args is None else args, old.kwargs if kwargs is None else kwargs
        )
        payload = Payload(made_id, *texts, None)
        if dialect_for(connection).insert(connection, spec_like(old), payload) is None:
            raise TaskQueueError(f"Task {payload.id} exists already.")
        made = UUID(hex=payload.id)
        Task.objects.using(connection.alias).filter(id=made).update(retry_of_id=task_id)
        act = Act(str(task_id), before=old.status, detail=f"with other arguments, as {made}")
        audit(connection, "task", "retry", [act], person=who)
    return made


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
