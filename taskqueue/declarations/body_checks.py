"""Check that workers can run a body, and that its options fit it."""

from __future__ import annotations

import inspect
from typing import Any

from taskqueue.declarations.definition import BaseDefinition, check_keys
from taskqueue.declarations.together import check_together, require_unique_key
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidTask


def check_body(definition: BaseDefinition[Any, Any]) -> None:
    """Raise `InvalidTask` if the options of a definition do not fit its body."""
    body, options = definition.body, definition.options
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise InvalidTask(
            f"{definition.name} is a generator. Return the result instead of yielding."
        )
    if "<locals>" in body.__qualname__ and not options.name:
        raise InvalidTask(
            f"{body.__qualname__} is defined inside another function, where no worker finds it. "
            "Move it to the top of its module."
        )
    parameters = list(inspect.signature(body).parameters.values())
    if options.takes_context and not (
        parameters
        and parameters[0].kind
        in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    ):
        raise InvalidTask(
            f"{definition.name} has takes_context=True, but no first argument for it."
        )
    if options.atomic and definition.is_async:
        raise InvalidTask(
            f"{definition.name}: atomic=True is for `def` bodies only, not for `async def`."
        )
    if options.atomic and options.pool == "thread":
        raise InvalidTask(f"{definition.name}: atomic=True and pool='thread' exclude each other.")
    if options.pool == "thread" and definition.is_async:
        raise InvalidTask(
            f"{definition.name}: pool='thread' is for `def` bodies; per_slot alone lets "
            "`async def` bodies share a slot."
        )
    if options.pool == "thread" and options.per_slot == 1:
        raise InvalidTask(
            f"{definition.name}: pool='thread' needs per_slot, such as per_slot=10: how many of "
            "its bodies run beside each other in one slot."
        )
    if options.per_slot > 1 and options.max_memory is not None:
        raise InvalidTask(
            f"{definition.name}: max_memory and per_slot exclude each other; bodies that share a "
            "slot share the memory of its process."
        )
    if options.per_slot > 1 and options.pool == "process":
        raise InvalidTask(
            f"{definition.name}: pool='process' gives each body a process; leave out per_slot."
        )
    if options.per_slot > 1 and not (definition.is_async or options.pool == "thread"):
        raise InvalidTask(
            f"{definition.name}: per_slot={options.per_slot} is for `async def` bodies, and "
            "for `def` bodies with pool='thread'. To run more bodies at once, start workers with a "
            "higher --concurrency."
        )
    unknown = options.sensitive - set(definition.signature.names)
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise InvalidTask(f"{definition.name} has no argument {sorted(unknown)[0]!r} to redact.")
    if options.batch is not None:
        try:
            definition.signature.check(definition.name, [[]], {})
        except ArgumentsDoNotBind:
            raise InvalidTask(
                f"{definition.name}: batch= gives the body one argument, the list of the events."
            ) from None
    check_together(options, name=definition.name)
    require_unique_key(options, name=definition.name)
    check_keys(definition.name, options, definition.signature)
    definition.snapshot  # noqa: B018  (raises what cannot be stored)
