"""The calls stored with a step, so that any worker can send them without the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from taskqueue.core.workflow_states import Spread, StepKind
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.snapshots import EMPTY, STEP
from taskqueue.declarations.workflows.graph import CompiledCall, Graph, Source, Step
from taskqueue.declarations.workflows.graph_json import graph_from_json, graph_to_json
from taskqueue.engine.making_specs import spec_of, traced
from taskqueue.engine.specs import EnqueueSpec

# The key under which the request of a map of unlike calls keeps the options of its tasks.
SPECS = "specs"
# Options that set a task's times; for steps they count from the release.
TIMED = ("run_at", "run_in", "deadline_at", "deadline_in", "expires_in")


def spec_of_call(call: CompiledCall) -> EnqueueSpec:
    """Return the spec of a call: the stored one, or the one that its definition gives."""
    if call.options is not None:
        return EnqueueSpec.from_json(dict(call.options))
    assert call.definition is not None
    return traced(spec_of(call.definition))


def _stored_spec(definition: BaseDefinition[Any, Any]) -> dict[str, Any]:
    """Return the spec of a task of a child workflow, as it is stored."""
    return traced(spec_of(definition)).as_json()


def step_spec(spec: EnqueueSpec) -> EnqueueSpec:
    """Return the spec of a task of a step.

    Its mark makes older versions leave the task to newer ones. `keep_last` does not apply: a
    workflow keeps all of its tasks for as long as it is kept itself.
    """
    mark = f'"{STEP}":true}}'
    before = spec.options
    options = f"{{{mark}" if before == EMPTY else f"{before[:-1]},{mark}"
    return replace(spec, options=options, keep_last=None)


def request_of(step: Step) -> dict[str, Any]:
    """Return what the row of a step stores of its call."""
    call = step.call
    if call is None:
        if step.kind is StepKind.MAP:
            return {SPECS: [spec.as_json() for spec in _specs(step)]}
        return {"value": step.value}
    stored: dict[str, Any] = {"name": call.name}
    if step.kind is StepKind.WORKFLOW:
        assert step.graph is not None
        return stored | {"graph": graph_to_json(step.graph, _stored_spec)}
    spec = spec_of_call(call)
    if step.kind is StepKind.MAP:
        stored |= call_to_json(call)
        if step.source is not None:
            source = step.source
            stored["source"] = [source.items, source.spread.value, source.size]
    elif any(getattr(spec, name) is not None for name in TIMED):
        stored["spec"] = spec.as_json()
    return stored


def _specs(step: Step) -> dict[EnqueueSpec, int]:
    """Return the specs of the tasks among unlike members, numbered."""
    specs = (spec_of_call(part.call) for part in step.parts if part.graph is None)
    return {spec: number for number, spec in enumerate(dict.fromkeys(specs))}


def entries_of(step: Step) -> Sequence[Sequence[Any]]:
    """Return the calls of a map as they are stored.

    Those of unlike members also have the number of their spec; a child is stored as its graph
    alone.
    """
    if not step.parts:
        return step.calls
    numbers = _specs(step)
    return [
        [part.call.args, part.call.kwargs, numbers[spec_of_call(part.call)]]
        if part.graph is None
        else [graph_to_json(part.graph, _stored_spec)]
        for part in step.parts
    ]


def has_parts(request: dict[str, Any]) -> bool:
    """Return whether a step has unlike members."""
    return SPECS in request


def spec_of_members(request: dict[str, Any], number: int | None) -> EnqueueSpec:
    """Return the spec of a map's members; for unlike members, the spec with this number."""
    return EnqueueSpec.from_json(request["spec"] if number is None else request[SPECS][number])


def call_to_json(call: CompiledCall) -> dict[str, Any]:
    """Return a call in the form in which it is stored."""
    spec = spec_of_call(call).as_json()
    return {"name": call.name, "args": call.args, "kwargs": call.kwargs, "spec": spec}


def call_from_json(stored: dict[str, Any]) -> CompiledCall:
    """Return a call from its stored form."""
    return CompiledCall(
        name=stored["name"], args=stored["args"], kwargs=stored["kwargs"], options=stored["spec"]
    )


def source_of(request: dict[str, Any]) -> Source | None:
    """Return the list from which a map's calls are made; None if the calls are known."""
    if "source" not in request:
        return None
    items, spread, size = request["source"]
    return Source(items=items, spread=Spread(spread), size=size)


def child_graph(request: dict[str, Any]) -> Graph:
    """Return the graph of a child. Raises `InvalidWorkflow` if this version cannot read it."""
    return graph_from_json(request["graph"])


def limited(spec: EnqueueSpec, *, now: datetime, deadline_at: datetime | None) -> dict[str, Any]:
    """Return the task columns that depend on the moment of the release.

    The deadline is the earlier one of the task's and its workflow's.
    """
    columns = spec.columns_at(now)
    names = ("status", "run_after", "ready_at", "deadline_at", "expires_at")
    times = {name: columns[name] for name in names}
    if deadline_at is not None:
        times["deadline_at"] = min(times["deadline_at"] or deadline_at, deadline_at)
    return times
