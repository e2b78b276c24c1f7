"""Workflows that a request describes as JSON, without a function of the project.

{"name": "import", "steps": [
    {"name": "load", "task": "shop.load", "args": [1]},
    {"name": "clean", "task": "shop.clean", "map": {"$step": "load", "path": ["files"]}},
    {"name": "mail", "task": "shop.mail", "args": [{"$step": "load", "part": "error"}],
     "after": [{"step": "load", "when": "failed"}]}]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from taskqueue.core.suggestions import did_you_mean
from taskqueue.core.workflow_states import After, Spread
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.workflows.bounds import MAX_STEPS
from taskqueue.declarations.workflows.builder import Builder, Dependency
from taskqueue.declarations.workflows.canvas import Canvas
from taskqueue.declarations.workflows.checking import check_name, check_step_count
from taskqueue.declarations.workflows.conditions import check_condition, targets_of
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.declarations.workflows.reference_data import Target, substitute
from taskqueue.declarations.workflows.references import Condition, Ending, Reference
from taskqueue.declarations.workflows.signatures import mapped, signature
from taskqueue.exceptions import (
    ArgumentsDoNotBind,
    InvalidArguments,
    InvalidTask,
    InvalidWorkflow,
    UnknownTask,
)

# Returns the definition of that name for a step, with the options that the step gives.
Find = Callable[[str, Mapping[str, Any]], BaseDefinition[Any, Any]]
KEYS = frozenset({"name", "steps"})
STEP_KEYS = frozenset(
    {"name", "task", "args", "kwargs", "options", "map", "after", "when", "on_failure"}
    | {"concurrency", "tolerate"}
)
SETTINGS = ("on_failure", "concurrency", "tolerate")


def adhoc_graph(request: Any, find: Find) -> Graph:
    """Return the graph that a request describes. Raises `InvalidWorkflow` with the place."""
    _check_keys(request, KEYS, what="A workflow")
    steps = request.get("steps")
    if not isinstance(steps, list) or not steps:
        raise InvalidWorkflow("A workflow needs a list of steps.")
    check_step_count(len(steps[: MAX_STEPS + 1]))
    with _at("name"):
        builder = Builder(check_name(request.get("name", "workflow"), what="workflow"))
    for place, step in enumerate(steps):
        with _at("steps", place):
            _add(builder, step, find)
    return builder.graph()


@contextmanager
def _at(*place: object) -> Iterator[None]:
    """Add the place in the request to errors."""
    try:
        yield
    except InvalidWorkflow as error:
        raise InvalidWorkflow(str(error), path=(*place, *error.path)) from None


def _add(builder: Builder, step: Any, find: Find) -> None:
    _check_keys(step, STEP_KEYS, what="A step")
    name = check_name(step.get("name"), what="step")
    settings: dict[str, Any] = {key: step[key] for key in SETTINGS if key in step}
    if step.get("when") is not None:
        check_condition(step["when"])
        read = [_reference(builder, name, target) for target in targets_of(step["when"])]
        settings["when"] = Condition(step["when"], read)
    try:
        builder.step(
            _canvas(builder, name, step, find),
            name=name,
            after=list(_after(builder, name, step.get("after", []))),
            **settings,
        )
    except InvalidWorkflow:
        raise
    except (ArgumentsDoNotBind, InvalidArguments, InvalidTask, UnknownTask) as error:
        raise InvalidWorkflow(f"Step {name!r}: {error}", path=getattr(error, "path", ())) from None


def _canvas(builder: Builder, name: str, step: Mapping[str, Any], find: Find) -> Canvas:
    """Return the call of a step, or the map of its calls. Raises `InvalidWorkflow` and others."""
    task, options = step.get("task"), step.get("options", {})
    args, kwargs = step.get("args", []), step.get("kwargs", {})
    if not isinstance(task, str) or not isinstance(options, dict):
        raise InvalidWorkflow(
            f"Step {name!r} needs the name of a task, and its options as an object."
        )
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise InvalidWorkflow(f"Step {name!r} needs args as a list and kwargs as an object.")
    definition = find(task, options)
    values = substitute(
        {"args": args, "kwargs": kwargs, "map": step.get("map")},
        lambda target: _reference(builder, name, target),
    )
    if step.get("map") is None:
        return signature(definition, values["args"], values["kwargs"])
    if args or kwargs:
        raise InvalidWorkflow(f"Step {name!r}: a map has items, and no args or kwargs.")
    return mapped(definition, values["map"], Spread.MAP)


def _reference(builder: Builder, name: str, target: Target) -> Reference:
    if not target.steps:
        raise InvalidWorkflow(f"Step {name!r} may refer to other steps only, not to {target}.")
    return Reference(builder, target)


def _after(builder: Builder, name: str, after: Any) -> Iterator[Dependency]:
    """Yield the dependencies of a step: names of steps, or objects with their ends."""
    for each in after if isinstance(after, list) else [after]:
        if isinstance(each, str):
            yield each
            continue
        upstream = each.get("step") if isinstance(each, dict) else None
        ends = [end.value for end in After]
        when = each.get("when", After.SUCCEEDED.value) if isinstance(each, dict) else None
        if not isinstance(upstream, str) or when not in ends or each.keys() - {"step", "when"}:
            raise InvalidWorkflow(
                f'Step {name!r}: after takes names of steps, or {{"step": "load", "when": '
                f'"failed"}} with one of {", ".join(ends)}.'
            )
        yield Ending(builder, (upstream,), After(when))


def _check_keys(value: Any, known: frozenset[str], *, what: str) -> None:
    if not isinstance(value, Mapping):
        raise InvalidWorkflow(f"{what} is an object with {', '.join(sorted(known))}.")
    for key in value:
        if key not in known:
            raise InvalidWorkflow(
                f"{what} has no {key!r}."
                + did_you_mean(key, known, otherwise=f"It may have {', '.join(sorted(known))}.")
            )
