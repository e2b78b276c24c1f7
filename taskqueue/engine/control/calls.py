"""Arguments that people give a task by hand; checked and stored as at an enqueue."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.declarations.call_differences import Call
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.payload import encode
from taskqueue.declarations.placement import Placement, partition_of
from taskqueue.exceptions import InvalidArguments
from taskqueue.models import Task

AnyDefinition = BaseDefinition[Any, Any]


def given_call(
    task: Task, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None
) -> tuple[Call, AnyDefinition | None]:
    """Return the arguments in the form in which JSON stores them, and the definition if known.

    If one is None, the task's own are used. Raises `ArgumentsDoNotBind` if this process knows the
    definition, and `InvalidArguments`.
    """
    _check_kinds(args, kwargs)
    call = Call(
        list(task.args if args is None else args), dict(task.kwargs if kwargs is None else kwargs)
    )
    definition = registry.find(task.name)
    if definition is None:
        return call, None
    definition.signature.check(task.name, call.args, dict(call.kwargs))
    checks = get_settings().CHECK_ARGUMENTS
    return Call(*definition.stored(call.args, call.kwargs, checks=checks)), definition


def texts_of(
    call: Call, definition: AnyDefinition | None = None, *, limit: int | None = None
) -> tuple[str, str]:
    """Return both as JSON text. Raises `InvalidArguments`, without what is sensitive."""
    limit = get_settings().MAX_ARGUMENTS if limit is None else limit
    secret = None if definition is None else definition.signature.is_secret
    args_text = encode(list(call.args), limit=limit, what="args", is_secret=secret)
    left = limit - len(args_text)
    return args_text, encode(dict(call.kwargs), limit=left, what="kwargs", is_secret=secret)


def placed_by(
    definition: AnyDefinition | None, call: Call, *, queue_name: str, texts: tuple[str, str]
) -> Placement | None:
    """Return the placement that the definition's limits give the call; None if it has no limits.

    Raises `InvalidTask`, and the errors of a callable key, cost or weight.
    """
    if definition is None or definition.limits is None:
        return None
    return definition.using(queue_name=queue_name).place(call.args, call.kwargs, stored=texts)


def placement_like(task: Task, limits: Any) -> Placement | None:
    """Return the placement of a task with the same limits in the same queue."""
    if limits is None:
        return None
    return Placement(partition_of(task.queue_name, limits).hex, json.dumps(limits))


def _check_kinds(args: object, kwargs: object) -> None:
    """Refuse other kinds: text is a sequence too, and a dict accepts a list of pairs."""
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
