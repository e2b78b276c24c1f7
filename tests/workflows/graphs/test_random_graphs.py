"""Random graphs: their order, their cycles, their runs, and their form as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskqueue import InvalidWorkflow
from taskqueue.core.workflow_states import (
    FINAL_STEPS,
    After,
    OnFailure,
    Spread,
    StepKind,
    StepStatus,
)
from taskqueue.declarations.workflows.checking import check_graph, in_order
from taskqueue.declarations.workflows.graph import (
    FORMAT,
    Callback,
    CompiledCall,
    Edge,
    Graph,
    Source,
    Step,
)
from taskqueue.declarations.workflows.graph_json import graph_from_json, graph_to_json
from taskqueue.engine.making_specs import spec_of
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.workflows import Builder
from tests.workflows import shop
from tests.workflows.model import run

ENDS = [StepStatus.SUCCEEDED, StepStatus.SUCCEEDED, StepStatus.FAILED]


def options_of(definition: Any) -> dict[str, Any]:
    """Return the options of a definition as the engine stores them."""
    return spec_of(definition).as_json()


@st.composite
def acyclic(draw: st.DrawFn, largest: int = 12) -> tuple[list[str], list[Edge]]:
    """Draw names and edges that go in no cycle, both in any order."""
    names = [f"s{number}" for number in range(draw(st.integers(1, largest)))]
    pairs = [(one, other) for place, other in enumerate(names) for one in names[:place]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    edges = [Edge(*pair, draw(st.sampled_from(After))) for pair in chosen]
    return draw(st.permutations(names)), edges


@given(acyclic())
def test_each_step_stands_behind_all_that_it_needs(drawn: tuple[list[str], list[Edge]]) -> None:
    names, edges = drawn
    order = in_order(names, edges)
    assert sorted(order) == sorted(names)
    assert all(order.index(edge.upstream) < order.index(edge.downstream) for edge in edges)


@given(acyclic(), st.data())
def test_a_cycle_is_found_and_is_one(drawn: tuple[list[str], list[Edge]], data: Any) -> None:
    names, edges = drawn
    order = in_order(names, edges)
    first = data.draw(st.integers(0, len(order) - 1))
    last = data.draw(st.integers(first, len(order) - 1))
    way = [Edge(one, other) for one, other in pairwise(order[first : last + 1])]
    edges = [*edges, *way, Edge(order[last], order[first])]
    with pytest.raises(InvalidWorkflow) as refusal:
        in_order(names, edges)
    cycle = str(refusal.value).removesuffix(".").rpartition(": ")[2].split(" → ")
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    arrows = {(edge.upstream, edge.downstream) for edge in edges}
    assert all(pair in arrows for pair in pairwise(cycle))


@given(acyclic(), st.data())
def test_every_run_of_a_graph_ends(drawn: tuple[list[str], list[Edge]], data: Any) -> None:
    names, edges = drawn
    outcomes = st.sampled_from(OnFailure)
    graph = Graph(
        name="random",
        steps=tuple(
            Step(name=name, kind=StepKind.TASK, on_failure=data.draw(outcomes)) for name in names
        ),
        edges=tuple(edges),
    )
    released, ends = run(
        graph,
        lambda running: data.draw(st.sampled_from(running)),
        lambda name: data.draw(st.sampled_from(ENDS)),
    )
    assert set(ends.values()) <= FINAL_STEPS
    assert len(set(released)) == len(released)
    for edge in edges:
        if {edge.upstream, edge.downstream} <= set(released):
            assert released.index(edge.upstream) < released.index(edge.downstream)


@given(acyclic(largest=8), st.data())
def test_builders_accept_whatever_has_an_order(
    drawn: tuple[list[str], list[Edge]], data: Any
) -> None:
    names, edges = drawn
    builder = Builder("random")
    for name in names:
        needed = [edge.upstream for edge in edges if edge.downstream == name]
        builder.step(shop.note.s(), name=name, after=needed)
    graph = builder.graph()
    assert {(e.upstream, e.downstream) for e in graph.edges} == {
        (e.upstream, e.downstream) for e in edges
    }
    assert [step.name for step in graph.steps] == in_order(names, graph.edges)


texts = st.sampled_from(["[]", "[1]", '[{"$step":"s0"}]'])
calls = st.builds(
    CompiledCall,
    name=st.sampled_from(["shop.a", "shop.b"]),
    args=texts,
    kwargs=st.sampled_from(["{}", '{"x":1e+16}']),
    options=st.sampled_from([{"queue_name": "a"}, {"queue_name": "b", "priority": 3}]),
)
steps = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(StepKind),
        "call": st.none() | calls,
        "calls": st.lists(st.tuples(texts, st.just("{}")), max_size=3).map(tuple),
        "source": st.none()
        | st.builds(Source, items=texts, spread=st.sampled_from(Spread), size=st.integers(1, 9)),
        "value": st.none() | texts,
        "inputs": st.lists(st.sampled_from(["s0", "s1"]), max_size=2).map(tuple),
        "when": st.none() | st.just({"op": "is_null", "of": [{"$step": "s0"}]}),
        "on_failure": st.sampled_from(OnFailure),
        "concurrency": st.none() | st.integers(1, 9),
        "tolerate": st.sampled_from([0, 1, 10, 0.25]),
        "compensate": st.none() | calls,
    }
)


@st.composite
def graphs(draw: st.DrawFn, depth: int = 0) -> Graph:
    """Draw a graph with every field."""
    names, edges = draw(acyclic(largest=4))
    inner = st.none() | graphs(depth + 1) if depth < 2 else st.none()
    return Graph(
        name=draw(st.sampled_from(["g", "shop.nightly"])),
        steps=tuple(Step(name=name, graph=draw(inner), **draw(steps)) for name in names),
        edges=tuple(edges),
        last=tuple(names[:1]),
        version=draw(st.sampled_from(["", "2"])),
        args=draw(texts),
        kwargs=draw(st.sampled_from(["{}", '{"token":"x"}'])),
        sensitive=draw(st.sampled_from([frozenset(), frozenset({"token", "day"})])),
        deadline=draw(
            st.sampled_from([None, timedelta(hours=6), datetime(2026, 3, 1, 12, tzinfo=UTC)])
        ),
        retention=draw(st.sampled_from([None, timedelta(0), timedelta(days=7)])),
        fail_fast=draw(st.booleans()),
        unique_key=draw(st.sampled_from([None, "key"])),
        on_duplicate=draw(st.sampled_from(["return", "raise"])),
        callbacks=tuple(
            draw(st.lists(st.builds(Callback, when=st.sampled_from(After), call=calls), max_size=2))
        ),
    )


@given(graphs())
def test_a_graph_comes_back_from_json_as_it_was(graph: Graph) -> None:
    stored = json.loads(json.dumps(graph_to_json(graph, options_of)))
    assert graph_from_json(stored) == graph


def test_a_built_graph_is_stored_with_the_options_of_its_tasks() -> None:
    graph = shop.nightly.build("monday", "secret")
    stored = json.loads(json.dumps(graph_to_json(graph, options_of)))
    back = graph_from_json(stored)
    check_graph(back)
    assert back.edges == graph.edges
    load = back.by_name["load"].call
    assert load is not None
    assert load.options is not None
    assert EnqueueSpec.from_json(dict(load.options)) == spec_of(shop.load)
    assert graph_to_json(back, options_of) == stored


def test_calls_of_one_definition_share_its_options() -> None:
    def body(wf: Builder) -> None:
        for number in range(50):
            wf.step(shop.clean.s("a"), name=f"n{number}")
        wf.step(shop.clean.using(priority=3).s("a"))
        wf.step(shop.clean.using(priority=3).s("a"), name="same")

    builder = Builder("many")
    body(builder)
    assert len(graph_to_json(builder.graph(), options_of)["options"]) == 2


def test_a_graph_that_is_too_large_to_store_is_refused() -> None:
    graph = shop.publish.map(["x" * 100] * 20_000).build()
    with pytest.raises(InvalidWorkflow, match=r"at most 1,048,576 can be stored\. .*fan_out"):
        graph_to_json(graph, options_of)


def test_a_newer_format_is_left_to_newer_versions() -> None:
    stored = graph_to_json(shop.child.build("monday"), options_of)
    with pytest.raises(InvalidWorkflow, match="format 2, and this version reads 1"):
        graph_from_json({**stored, "format": FORMAT + 1})


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": None},
        {"steps": [{"name": "a"}]},
        {"steps": [{"name": "a", "kind": "unknown"}]},
        {"edges": [["a"]]},
        {"edges": {}},
        {"steps": [{"name": "a", "kind": "task", "call": {"name": "b", "options": 99}}]},
    ],
)
def test_a_damaged_graph_is_refused(changes: dict[str, Any]) -> None:
    stored = graph_to_json(shop.child.build("monday"), options_of)
    with pytest.raises(InvalidWorkflow, match="cannot be read"):
        graph_from_json({**stored, **changes})
