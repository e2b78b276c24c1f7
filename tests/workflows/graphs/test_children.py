"""Workflows with arguments and keys of their own, and within each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from taskqueue import ArgumentsDoNotBind, InvalidArguments, InvalidWorkflow
from taskqueue.core.workflow_states import After, StepKind
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.workflows import Builder, Workflow
from tests.workflows import shop
from tests.workflows.graph_text import edges, steps


def built(body: Callable[[Builder], object]) -> Graph:
    """Return the graph that a function builds."""
    builder = Builder("made")
    body(builder)
    return builder.graph()


def test_a_child_is_built_with_its_own_steps() -> None:
    graph = shop.nightly.build("monday", "x")
    inner = graph.by_name["child"].graph
    assert graph.by_name["child"].kind is StepKind.WORKFLOW
    assert inner is not None
    assert steps(inner) == {"load": 'load["monday"]', "collect": 'collect[{"$step":"load"},[]]'}


def test_a_child_is_given_results_by_its_arguments() -> None:
    def body(wf: Builder) -> None:
        loaded = wf.step(shop.load.s("monday"))
        wf.step(shop.child.s("tuesday", files=[loaded["files"], {"all": loaded}]))

    graph = built(body)
    inner = graph.by_name["child"].graph
    assert inner is not None
    assert json.loads(inner.kwargs) == {
        "files": [{"$step": "load", "path": ["files"]}, {"all": {"$step": "load"}}]
    }
    collected = json.loads(steps(inner)["collect"].removeprefix("collect"))
    assert collected[1] == [
        {"$argument": "files", "path": [0]},
        {"all": {"$argument": "files", "path": [1, "all"]}},
    ]
    assert edges(graph) == {"load -> child"}


def test_a_child_in_a_chain_is_given_the_result_before() -> None:
    graph = (shop.load.s("monday") | shop.child.s()).build()
    inner = graph.by_name["child"].graph
    assert inner is not None
    assert steps(inner)["load"] == 'load[{"$argument":0}]'


def test_a_workflow_alone_is_its_own_graph() -> None:
    assert steps(shop.child.s("monday").build()) == steps(shop.child.build("monday"))
    graph = shop.child.s("monday").on_end(shop.note.si()).build()
    assert [each.when for each in graph.callbacks] == [After.ENDED]


def test_arguments_of_a_workflow_are_refused_as_those_of_a_task() -> None:
    with pytest.raises(ArgumentsDoNotBind, match="missing a required argument: 'token'"):
        shop.nightly.si("monday")
    with pytest.raises(InvalidArguments):
        shop.nightly.build("monday", object())
    with pytest.raises(InvalidWorkflow, match="missing a required argument: 'token'"):
        shop.nightly.build("monday")


def test_a_workflow_is_given_its_arguments_as_json_gives_them_back() -> None:
    given: list[Any] = []

    def body(wf: Builder, *values: Any) -> None:
        given.extend(values)
        wf.step(shop.note.s())

    workflow = Workflow(body, replace(shop.child.options, name="made"))
    workflow.build((1, 2), {"$step": "mine"})
    assert given == [[1, 2], {"$step": "mine"}]


def test_the_key_of_a_workflow_may_be_made_of_its_arguments() -> None:
    by_day = shop.nightly.using(unique_key=["day"])
    one, other = by_day.build("monday", "x"), by_day.build("monday", "y")
    assert one.unique_key is not None
    assert one.unique_key == other.unique_key != by_day.build("tuesday", "x").unique_key


def test_only_the_outermost_workflow_holds_a_key() -> None:
    def body(wf: Builder) -> None:
        wf.step(shop.child.using(unique_key="x").s("monday"))

    with pytest.raises(InvalidWorkflow, match=r"child\.using\(unique_key=None\)"):
        built(body)
