"""Workflows that a request describes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from taskqueue import InvalidWorkflow
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.workflows.adhoc import adhoc_graph
from taskqueue.declarations.workflows.graph import Graph
from tests.workflows import shop
from tests.workflows.graph_text import edges, steps

SHOP = f"{shop.__name__}."


def find(name: str, options: Mapping[str, Any]) -> BaseDefinition[Any, Any]:
    return registry.get(SHOP + name).using(**options)


def built(*described: Any, **more: Any) -> Graph:
    return adhoc_graph({"steps": list(described), **more}, find)


LOAD = {"name": "load", "task": "load", "args": ["monday"]}


def test_a_request_describes_steps_with_references_and_ends() -> None:
    graph = built(
        {"name": "mail", "task": "page", "args": [{"$step": "load", "part": "error"}]},
        LOAD,
        {
            "name": "clean",
            "task": "clean",
            "map": {"$step": "load", "path": ["files"]},
            "concurrency": 5,
            "tolerate": 0.5,
        },
        {
            "name": "sum",
            "task": "summarise",
            "kwargs": {"parts": {"$step": "clean"}},
            "when": {"op": ">", "of": [{"$step": "load", "path": ["rows"]}, 0]},
            "on_failure": "continue",
            "options": {"priority": 5},
        },
        {"name": "end", "task": "note", "after": ["mail", {"step": "sum", "when": "ended"}]},
        name="import",
    )
    assert graph.name == "import"
    assert steps(graph) == {
        "load": 'load["monday"]',
        "mail": 'page[{"$step":"load","part":"error"}]',
        "clean": 'clean[] for map {"$step":"load","path":["files"]}',
        "sum": 'summarise[]{"parts":{"$step":"clean"}}',
        "end": "note[]",
    }
    assert edges(graph) == {
        "load -failed-> mail",
        "load -> clean",
        "clean -> sum",
        "load -> sum",
        "mail -> end",
        "sum -ended-> end",
    }
    assert graph.by_name["sum"].on_failure == "continue"
    assert graph.by_name["clean"].concurrency == 5


def test_items_of_a_map_may_stand_in_the_request() -> None:
    graph = built({"name": "clean", "task": "publish", "map": ["a", {"$$step": "mine"}]})
    assert steps(graph) == {"clean": 'publish*2 ["a"] [{"$$step":"mine"}]'}


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ([], "needs a list of steps"),
        ([7], "A step is an object with after, args"),
        ([{**LOAD, "tsk": "x"}], r"A step has no 'tsk'\. Did you mean 'task'\?"),
        ([{"name": "a"}], "Step 'a' needs the name of a task"),
        ([{"name": "a", "task": "load", "options": []}], "its options as an object"),
        ([{"task": "load"}], "name of a step must be"),
        ([{"name": "a", "task": "lod"}], r"Step 'a': No task is named .* Did you mean"),
        ([{**LOAD, "args": "monday"}], "args as a list"),
        ([{**LOAD, "args": []}], "Step 'load': .*missing a required argument: 'day'"),
        ([{**LOAD, "args": [1, 2, 3]}], "too many positional arguments"),
        ([{**LOAD, "options": {"prority": 5}}], "Step 'load': There is no option 'prority'"),
        ([{**LOAD, "map": [1]}], "a map has items, and no args or kwargs"),
        ([{"name": "a", "task": "clean", "map": {"b": 1}}], "needs a list of items"),
        ([LOAD, LOAD], "Two steps are named 'load'"),
        ([{**LOAD, "after": "lod"}], "refers to the step 'lod'"),
        ([{**LOAD, "after": {"step": "x", "when": "late"}}], "after takes names of steps"),
        ([{**LOAD, "after": [{"step": "x", "wen": "failed"}]}], "after takes names of steps"),
        ([{**LOAD, "after": [7]}], "after takes names of steps"),
        ([{**LOAD, "args": [{"$step": "load"}]}], "load → load"),
        ([{**LOAD, "args": [{"$step": "lod"}]}], r"'lod', which .* Did you mean 'load'\?"),
        ([{**LOAD, "args": [{"$step": 7}]}], "A reference needs the name of a step"),
        ([{**LOAD, "args": [{"$argument": 0}]}], "may refer to other steps only"),
        ([{**LOAD, "when": {"op": ">"}}], "A condition has an `op`"),
        ([{**LOAD, "when": {"op": "is_null", "of": [{"$workflow": "error"}]}}], "steps only"),
        ([{**LOAD, "on_failure": "no"}], "on_failure must be"),
        ([{**LOAD, "tolerate": "1%"}], "tolerate must be"),
        ([{"name": "a", "task": "sync", "args": [1]}], "has a unique_key"),
    ],
)
def test_wrong_requests_are_refused(described: list[Any], reason: str) -> None:
    with pytest.raises(InvalidWorkflow, match=reason):
        built(*described)


@pytest.mark.parametrize("request_", [None, [], {"steps": {}}, {"steps": [LOAD], "nam": "x"}])
def test_a_value_that_is_no_workflow_is_refused(request_: Any) -> None:
    with pytest.raises(InvalidWorkflow, match=r"A workflow "):
        adhoc_graph(request_, find)


def test_more_steps_than_may_be_are_refused_before_they_are_read() -> None:
    with pytest.raises(InvalidWorkflow, match="at most 10,000 steps"):
        built(*[None] * 10_001)
