"""Bodies of requests that enqueue workflows, either by name or with their own steps."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import DatabaseError
from rest_framework import serializers

from taskqueue.api.fields import DescribedField, Reasoned, Text
from taskqueue.api.problems import InvalidBody, Problem
from taskqueue.api.tasks.bodies import AnyDefinition, check_secrets, exposed, with_options
from taskqueue.api.tasks.option_fields import EnqueueOptions
from taskqueue.core.suggestions import did_you_mean
from taskqueue.core.workflow_states import OnFailure
from taskqueue.declarations.definition import registry
from taskqueue.declarations.workflows.adhoc import adhoc_graph
from taskqueue.declarations.workflows.bounds import LONGEST_NAME, MAX_STEPS
from taskqueue.declarations.workflows.graph import Graph, Step
from taskqueue.declarations.workflows.graph_json import graph_to_json
from taskqueue.declarations.workflows.workflow import BaseWorkflow, workflows
from taskqueue.engine.making_specs import spec_of
from taskqueue.exceptions import InvalidTask, InvalidWorkflow, TaskQueueError

logger = logging.getLogger("taskqueue.api")


class Steps(DescribedField):
    """The steps of a workflow that has no function in the project; `adhoc` checks them."""

    json_schema = {
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_STEPS,
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
                "task": {"type": "string", "description": "Of a task type marked `api=True`."},
                "args": {
                    "type": "array",
                    "items": {},
                    "description": '`{"$step": "load", "path": ["rows"]}` stands for a part of the'
                    " result of a step.",
                },
                "kwargs": {"type": "object", "additionalProperties": True},
                "options": {
                    "type": "object",
                    "additionalProperties": True,
                    "description": "In place of the type's own, as of `tasks/`.",
                },
                "map": {"description": "A list of items, or the result of a step: a call of each."},
                "after": {
                    "oneOf": [
                        {"type": "string"},
                        {"type": "object", "additionalProperties": True},
                        {"type": "array", "items": {}},
                    ],
                    "description": 'Names of steps, or `{"step": "load", "when": "failed"}`.',
                },
                "when": {
                    "type": "object",
                    "additionalProperties": True,
                    "description": 'Such as `{"op": ">", "of": [{"$step": "load"}, 0]}`.',
                },
                "on_failure": {"type": "string", "enum": [each.value for each in OnFailure]},
                "concurrency": {"type": "integer", "minimum": 1},
                "tolerate": {"type": "number", "minimum": 0},
            },
            "required": ["name", "task"],
            "additionalProperties": False,
        },
    }

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, list):
            raise serializers.ValidationError("must be a list of steps.")
        return data


class EnqueueWorkflow(Reasoned):
    """A workflow marked `api=True` by its name with its arguments, or steps."""

    name = Text(
        required=False,
        max_length=500,
        help_text="The name of the workflow; with `steps`, any name, by default `workflow`.",
    )
    args = serializers.ListField(required=False)
    kwargs = serializers.DictField(required=False)
    steps = Steps(required=False, help_text="Instead of arguments.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly one of the two."""
        if "steps" in attrs:
            for name in ("args", "kwargs"):
                if name in attrs:
                    raise serializers.ValidationError({name: "Steps have arguments of their own."})
        elif "name" not in attrs:
            raise serializers.ValidationError({"name": "Give the name of a workflow, or steps."})
        return attrs


def wanted_graph(body: Mapping[str, Any]) -> Graph:
    """Return the graph that is to be enqueued. Raises 403 and 422; writes nothing."""
    graph = _from_steps(body) if "steps" in body else _by_name(body)
    try:
        graph_to_json(graph, lambda definition: spec_of(definition).as_json())
    except InvalidWorkflow as error:
        raise _invalid(error, "steps" if "steps" in body else "kwargs") from None
    return graph


def exposed_workflows() -> list[BaseWorkflow]:
    """Return the workflows that may be enqueued over REST, by name."""
    return [workflow for workflow in workflows.all() if workflow.options.api]


def _exposed(name: str) -> BaseWorkflow:
    workflow = workflows.find(name)
    if workflow is None:
        hint = did_you_mean(name, [known.name for known in exposed_workflows()])
        detail = f"No workflow is named {name!r}.{hint}"
        raise Problem(422, "unknown_workflow", detail, at=("name",))
    if not workflow.options.api:
        detail = f"{name} may not be enqueued over REST: it is not marked api=True."
        raise Problem(403, "workflow_not_exposed", detail, at=("name",))
    return workflow


def _by_name(body: Mapping[str, Any]) -> Graph:
    workflow = _exposed(body["name"])
    args, kwargs = body.get("args", []), body.get("kwargs", {})
    check_secrets(workflow, args, kwargs)
    try:
        return workflow.build(*args, **kwargs)
    except InvalidWorkflow as error:
        raise _invalid(error, "kwargs") from None
    except (TaskQueueError, DatabaseError):
        raise
    except Exception as error:
        # Its text is left out: it may contain an argument, which may be secret.
        kind = type(error).__name__
        logger.warning("Workflow not built workflow=%s", workflow.name, exc_info=True)
        detail = f"{workflow.name} cannot be built of these arguments: {kind}."
        raise Problem(422, "workflow_not_built", detail, at=("kwargs",)) from None


def _from_steps(body: Mapping[str, Any]) -> Graph:
    request = {name: body[name] for name in ("name", "steps") if name in body}
    finder = _Finder()
    try:
        graph = adhoc_graph(request, finder)
    except Problem as problem:
        raise problem.below("steps", finder.place) from None
    except InvalidWorkflow as error:
        raise _invalid(error, *(error.path or ("steps",))) from None
    places = {step["name"]: place for place, step in enumerate(body["steps"])}
    for step in graph.steps:
        _check_step_secrets(step, places[step.name])
    return graph


class _Finder:
    """Find the definitions of steps one after another, and keep the place of the current one."""

    def __init__(self) -> None:
        self.place = -1

    def __call__(self, name: str, options: Mapping[str, Any]) -> AnyDefinition:
        self.place += 1
        definition = exposed(name, field="task")
        if not options:
            return definition
        serializer = EnqueueOptions(data=options)
        if not serializer.is_valid():
            raise InvalidBody({"steps": {str(self.place): {"options": serializer.errors}}})
        try:
            return with_options(definition, serializer.validated_data)
        except Problem as problem:
            raise problem.below("options") from None


def _check_step_secrets(step: Step, place: int) -> None:
    """Refuse the placeholder that answers show instead of a secret."""
    definition = None if step.call is None else registry.find(step.call.name)
    if definition is None or not definition.options.sensitive:
        return
    try:
        for args, kwargs in _calls(step):
            check_secrets(definition, args, kwargs)
    except Problem as problem:
        raise problem.below("steps", place) from None


def _calls(step: Step) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    calls = step.calls or (() if step.call is None else ((step.call.args, step.call.kwargs),))
    for args, kwargs in calls:
        yield json.loads(args), json.loads(kwargs)


def _invalid(error: InvalidTask, *place: object) -> Problem:
    return Problem(422, "invalid_workflow", str(error), at=tuple(place))
