"""A compiled workflow computes what its canvas means: run step by step, and read off directly."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from taskqueue import chain, group
from taskqueue.core.workflow_states import StepKind
from taskqueue.declarations.workflows.canvas import Canvas
from taskqueue.declarations.workflows.graph import CompiledCall, Graph, Step
from taskqueue.declarations.workflows.reference_data import Read, resolve
from taskqueue.declarations.workflows.resolution import (
    KnownValues,
    calls_of,
    resolved_call,
    return_value,
)
from taskqueue.workflows import Builder, Workflow
from tests.workflows import shop

# A canvas as plain data, from which both sides are made.
Plan = tuple[Any, ...]
NOTHING = object()

args = st.lists(st.integers(0, 9), max_size=2)
calls = st.tuples(st.sampled_from(["s", "si"]), args)
plans = st.recursive(
    calls,
    lambda inner: (
        st.tuples(st.just("chain"), st.lists(inner, min_size=1, max_size=3))
        | st.tuples(st.just("group"), st.lists(inner, max_size=3))
        | st.tuples(st.just("child"), inner)
    ),
    max_leaves=7,
)


def ran(*values: Any) -> list[Any]:
    """Return the result of a task: what it was given."""
    return ["ran", *values]


def canvas_of(plan: Plan) -> Canvas:
    """Return the canvas of a plan."""
    match plan:
        case ("s", values):
            return shop.collect.s(*values)
        case ("si", values):
            return shop.collect.si(*values)
        case ("chain", parts):
            return chain(map(canvas_of, parts))
        case ("group", parts):
            return group(map(canvas_of, parts))
        case ("child", inner):
            return workflow_of(inner).s()
    raise AssertionError(plan)


def workflow_of(plan: Plan) -> Workflow:
    """Return a workflow whose steps are a plan, given the workflow's arguments."""

    def body(wf: Builder, *before: Any) -> None:
        first = wf.step(shop.collect.s(*before, "child"), name="first")
        wf.step(chain(shop.collect.s(first), canvas_of(plan)), name="plan")

    return Workflow(body, replace(shop.child.options, name="made"))


def meant(plan: Plan, before: Any = NOTHING) -> Any:
    """Return what a plan means, without any graph."""
    given = [] if before is NOTHING else [before]
    match plan:
        case ("s", values):
            return ran(*given, *values)
        case ("si", values):
            return ran(*values)
        case ("chain", parts):
            for part in parts:
                before = meant(part, before)
            return before
        case ("group", parts):
            return [meant(part, before) for part in parts]
        case ("child", inner):
            return meant(inner, ran(ran(*given, "child")))
    raise AssertionError(plan)


def result_of(graph: Graph, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Run a graph, step by step in its order, and return its result."""
    results: dict[str, Any] = {}
    read = KnownValues(results=results, args=args, kwargs=kwargs)
    needs: dict[str, set[str]] = {step.name: set() for step in graph.steps}
    for edge in graph.edges:
        needs[edge.downstream].add(edge.upstream)
    for step in graph.steps:
        assert needs[step.name] <= results.keys(), "It runs before something that it needs."
        assert set(step.inputs) <= needs[step.name], "It reads something that it does not wait for."
        results[step.name] = json.loads(json.dumps(_run(step, read)))
    return return_value(graph.last, read)


def _run(step: Step, read: Read) -> Any:
    if step.value is not None:
        return resolve(step.value, read)
    call = step.call
    assert call is not None
    if step.kind is StepKind.MAP:
        members = step.calls
        if step.source is not None:
            members = tuple(calls_of(call, step.source, read, limit=10_000))
        return [_called(replace(call, args=a, kwargs=k), read) for a, k in members]
    if step.graph is not None:
        return result_of(step.graph, *resolved_call(call.args, call.kwargs, read))
    return _called(call, read)


def _called(call: CompiledCall, read: Read) -> Any:
    values, named = resolved_call(call.args, call.kwargs, read)
    assert not named
    return ran(*values)


@given(plans)
def test_a_canvas_alone_computes_what_it_means(plan: Plan) -> None:
    graph = canvas_of(plan).build()
    assert result_of(graph, [], {}) == meant(plan)


@given(plans)
def test_a_canvas_in_a_builder_computes_what_it_means(plan: Plan) -> None:
    builder = Builder("made")
    loaded = builder.step(shop.collect.s("load"), name="load")
    builder.step(chain(shop.collect.s(loaded[1]), canvas_of(plan)), name="plan")
    assert result_of(builder.graph(), [], {}) == meant(plan, ran("load"))


@given(st.lists(st.integers(0, 9), max_size=5), st.integers(1, 3))
def test_maps_over_a_result_compute_what_they_mean(items: list[int], size: int) -> None:
    def body(wf: Builder, ids: Any) -> None:
        each = wf.step(shop.collect.map(ids), name="each")
        pairs = wf.step(shop.collect.starmap(each), name="pairs")
        wf.step(shop.index.chunks(pairs, size) | shop.collect.s("end"), name="sum")

    builder = Builder("outer")
    ids = builder.step(group(shop.collect.si(i) for i in items), name="ids")
    builder.step(Workflow(body, replace(shop.child.options, name="made")).s(ids))
    pairs = [ran(*ran(ran(i))) for i in items]
    chunks = [ran(pairs[at : at + size]) for at in range(0, len(pairs), size)]
    assert result_of(builder.graph(), [], {}) == ran(chunks, "end")
