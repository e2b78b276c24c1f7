"""Comparing the graph of a workflow with a drawing of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from taskqueue.core.workflow_states import After
from taskqueue.declarations.workflows.canvas import Canvas
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.declarations.workflows.workflow import BaseWorkflow
from taskqueue.engine.connections import database_alias
from taskqueue.models import Dependency, Step
from taskqueue.results.workflows import WorkflowRun

# A canvas such as `chain(...)` or `nightly.s(day)`, its graph, or a workflow that was enqueued.
Drawn = Canvas | BaseWorkflow | Graph | WorkflowRun
# Lines such as `load -> clean -> report`, or the steps that each step follows, by its name.
Drawing = str | Mapping[str, Iterable[str]]
ARROWS = {After.SUCCEEDED: "->", After.FAILED: "-failed->", After.ENDED: "-ended->"}
ARROW = re.compile(r"\s+(-(?:failed-|ended-)?>)\s+")
# The name of a step, an arrow, and the name of the following step.
Edge = tuple[str, str, str]


def assert_graph(workflow: Drawn, expected: Drawing) -> None:
    """Assert that a workflow has these steps and dependencies, and no others.

    `expected` is text, one or more steps a line: `load -> clean -> report`. The arrows are `->`,
    `-failed->` and `-ended->`; a step without any stands alone. Or it is a dict of the steps that
    each step follows: `{"load": [], "clean": ["load"], "page": ["clean.failed"]}`. The graphs of
    children are not part of it. Raises `InvalidWorkflow` where the canvas builds none.
    """
    steps, edges = _graph_of(workflow)
    drawn = _of_text(expected) if isinstance(expected, str) else _of_mapping(expected)
    wanted_steps, wanted_edges = drawn
    different = [
        *_listed("Missing steps", wanted_steps - steps),
        *_listed("Unexpected steps", steps - wanted_steps),
        *_listed("Missing dependencies", map(" ".join, wanted_edges - edges)),
        *_listed("Unexpected dependencies", map(" ".join, edges - wanted_edges)),
    ]
    if different:
        graph = "\n".join(f"  {line}" for line in drawing(steps, edges))
        raise AssertionError("\n".join(["The graph differs.", *different, "It is:", graph]))


def drawing(steps: Iterable[str], edges: Iterable[Edge]) -> list[str]:
    """Return the lines of a graph, as `assert_graph` reads them."""
    lines = sorted(map(" ".join, edges))
    alone = set(steps) - {name for edge in edges for name in (edge[0], edge[2])}
    return [*lines, *sorted(alone)]


def _graph_of(workflow: Drawn) -> tuple[set[str], set[Edge]]:
    if isinstance(workflow, WorkflowRun):
        return _graph_in_database(workflow)
    graph = workflow if isinstance(workflow, Graph) else workflow.build()
    if not isinstance(graph, Graph):
        raise TypeError(f"Pass a canvas, a workflow or a handle on one, not {workflow!r}.")
    edges = {(edge.upstream, ARROWS[edge.when], edge.downstream) for edge in graph.edges}
    return {step.name for step in graph.steps}, edges


def _graph_in_database(run: WorkflowRun) -> tuple[set[str], set[Edge]]:
    """Return the steps as they were built: those of fan-outs came later."""
    steps = Step.objects.using(database_alias()).filter(workflow_id=run.id, parent_step_id=None)
    rows = Dependency.objects.using(database_alias()).filter(downstream__workflow_id=run.id)
    found = rows.values_list("upstream__name", "when", "downstream__name")
    edges = {(upstream, ARROWS[After(when)], downstream) for upstream, when, downstream in found}
    return set(steps.values_list("name", flat=True)), edges


def _of_text(text: str) -> tuple[set[str], set[Edge]]:
    steps: set[str] = set()
    edges: set[Edge] = set()
    for line in filter(None, map(str.strip, text.splitlines())):
        names, arrows = ARROW.split(line)[::2], ARROW.split(line)[1::2]
        steps.update(names)
        for (upstream, downstream), arrow in zip(pairwise(names), arrows, strict=True):
            edges.add((upstream, arrow, downstream))
    return steps, edges


def _of_mapping(expected: Mapping[str, Iterable[str]]) -> tuple[set[str], set[Edge]]:
    edges: set[Edge] = set()
    for downstream, before in expected.items():
        if isinstance(before, str):
            raise TypeError(f"{downstream!r} must follow a list of steps, not {before!r}.")
        for text in before:
            name, _, end = text.rpartition(".")
            if text in expected or end not in {After.FAILED, After.ENDED}:
                name, end = text, After.SUCCEEDED
            edges.add((name, ARROWS[After(end)], downstream))
    return set(expected), edges


def _listed(what: str, found: Iterable[str]) -> list[str]:
    names = sorted(found)
    return [f"{what}: {', '.join(names)}."] if names else []
