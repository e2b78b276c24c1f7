"""Redact sensitive arguments; every output uses this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.workflows.workflow import BaseWorkflow, workflows

REDACTED = "[redacted]"


class ShownArguments(NamedTuple):
    """Arguments without the values of `sensitive` ones."""

    args: list[Any]
    kwargs: dict[str, Any]


def redacted(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ShownArguments | None:
    """Return the arguments of a task, redacted for everybody who may see the task.

    None if no definition of that name is known here: nothing tells which arguments are sensitive,
    so that only users who may view any argument may see them.
    """
    definition = registry.find(name)
    return None if definition is None else redacted_for(definition, args, kwargs)


def redacted_state(name: str, state: Any) -> Any:
    """Return the checkpoint of a task, redacted if the definition has sensitive arguments."""
    definition = registry.find(name)
    if definition is None:
        return None
    return REDACTED if definition.options.sensitive else state


def redacted_workflow(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ShownArguments | None:
    """Return the arguments of a workflow, redacted by the signature of its builder."""
    declared = workflows.find(name)
    return None if declared is None else redacted_for(declared, args, kwargs)


def redacted_context(name: str, context: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the context of a workflow; keys named like sensitive arguments are redacted."""
    declared = workflows.find(name)
    if declared is None:
        return None
    hidden = declared.options.sensitive
    return {key: REDACTED if key in hidden else value for key, value in context.items()}


def secret_places(
    target: BaseDefinition[Any, Any] | BaseWorkflow, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """Return the part, `args` or `kwargs`, and the index or name of each sensitive argument."""
    marks = redacted_for(target, [None] * len(args), dict.fromkeys(kwargs))
    places = [("args", place) for place, mark in enumerate(marks.args) if mark == REDACTED]
    return places + [("kwargs", name) for name, mark in marks.kwargs.items() if mark == REDACTED]


def redacted_for(
    definition: BaseDefinition[Any, Any] | BaseWorkflow,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> ShownArguments:
    """Return the arguments without the values that the definition calls sensitive.

    A value that fits no parameter of a definition with secrets is redacted too: it was enqueued
    by other code, under a name that may have been the secret's.
    """
    if not definition.options.sensitive:
        return ShownArguments(list(args), dict(kwargs))
    is_secret = definition.signature.is_secret
    return ShownArguments(
        [REDACTED if is_secret(place) else value for place, value in enumerate(args)],
        {key: REDACTED if is_secret(key) else value for key, value in kwargs.items()},
    )
