"""Check a compiled workflow: its bounds, its names, and that it has no cycles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.workflows.bounds import (
    LONGEST_NAME,
    MAX_CALLS,
    MAX_EDGES,
    MAX_MEMBERS,
    MAX_NESTING,
    MAX_STEPS,
)
from taskqueue.declarations.workflows.graph import Edge, Graph
from taskqueue.exceptions import InvalidWorkflow

# Of a longer cycle, messages name its beginning and end.
LONGEST_CYCLE = 20
NAME = re.compile(r"\w[\w.:<>()-]*")


def check_name(name: Any, *, what: str) -> str:
    """Return the name of a step or a workflow. Raises `InvalidWorkflow`."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        size = f" This one has {len(name)}." if isinstance(name, str) and len(name) > 1 else ""
        raise InvalidWorkflow(
            f"The name of a {what} must be 1 to {LONGEST_NAME} letters, digits, '_', '-', '.', "
            f"':' or brackets, and begin with a letter, digit or '_', not {_cut(name)}.{size}"
        )
    return name


def _cut(name: object) -> str:
    text = repr(name)
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def check_nesting(depth: int, name: str) -> None:
    """Raise `InvalidWorkflow` for a workflow that lies too deep within others."""
    if depth > MAX_NESTING:
        raise InvalidWorkflow(
            f"{name}: workflows and fan-outs may be nested at most {MAX_NESTING} deep. Does it "
            "contain itself?"
        )


def check_canvas_nesting(levels: int) -> None:
    """Raise `InvalidWorkflow` for canvases that lie too deep within each other."""
    if levels > MAX_NESTING:
        raise InvalidWorkflow(
            f"Chains, groups and callbacks may be nested at most {MAX_NESTING} deep. Use a "
            "@workflow with named steps, or a child workflow."
        )


def check_step_count(count: int) -> None:
    """Raise `InvalidWorkflow` for too many steps."""
    if count > MAX_STEPS:
        raise InvalidWorkflow(
            f"A workflow may have at most {MAX_STEPS:,} steps. Use map for many calls of one task: "
            "they are one step."
        )


def check_edge_count(count: int) -> None:
    """Raise `InvalidWorkflow` for too many dependencies."""
    if count > MAX_EDGES:
        raise InvalidWorkflow(
            f"A workflow may have at most {MAX_EDGES:,} dependencies. Put a group between many "
            "steps and many others: it waits for all of the first."
        )


def check_call_count(count: int, name: str) -> None:
    """Raise `InvalidWorkflow` for too many calls of one map."""
    if count > MAX_CALLS:
        raise InvalidWorkflow(
            f"{name}: a map may have at most {MAX_CALLS:,} calls. Use chunks for more items."
        )


def check_member_count(count: int) -> None:
    """Raise `InvalidWorkflow` for too many members in all."""
    if count > MAX_MEMBERS:
        raise InvalidWorkflow(
            f"A workflow may have at most {MAX_MEMBERS:,} members in all, not {count:,}. Use "
            "chunks, so that each takes more items."
        )


def check_known(name: str, known: Iterable[str], *, by: str) -> None:
    """Raise `InvalidWorkflow`, which suggests the nearest name, for a step that does not exist."""
    names = known if isinstance(known, Mapping | set | frozenset) else set(known)
    if name not in names:
        raise InvalidWorkflow(
            f"{by} refers to the step {_cut(name)}, which does not exist."
            + did_you_mean(name, names)
        )


def check_concurrency(value: Any) -> int | None:
    """Return how many members are sent at once. Raises `InvalidWorkflow`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_MEMBERS:
        raise InvalidWorkflow(
            f"concurrency must be a whole number of 1 to {MAX_MEMBERS:,}, or None for all, "
            f"not {value!r}."
        )
    return value


def check_tolerate(value: Any) -> int | float:
    """Return how many members may fail, or below 1 their share. Raises `InvalidWorkflow`."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_MEMBERS
    if is_count or (isinstance(value, float) and 0 <= value < 1):
        return value  # type: ignore[no-any-return]
    raise InvalidWorkflow(
        "tolerate must be a number of members, such as 10, or a share of them below 1, such as "
        f"0.01, not {value!r}."
    )


def in_order(names: Sequence[str], edges: Iterable[Edge]) -> list[str]:
    """Return the steps so that each follows all that it needs; else as they were declared.

    Raises `InvalidWorkflow`, which names a cycle, if there is no such order.
    """
    place = {name: number for number, name in enumerate(names)}
    followers: dict[str, list[str]] = {name: [] for name in names}
    waits = dict.fromkeys(names, 0)
    for upstream, downstream in {(edge.upstream, edge.downstream) for edge in edges}:
        followers[upstream].append(downstream)
        waits[downstream] += 1
    free = [place[name] for name in names if not waits[name]]
    heapify(free)
    order = []
    while free:
        name = names[heappop(free)]
        order.append(name)
        for follower in followers[name]:
            waits[follower] -= 1
            if not waits[follower]:
                heappush(free, place[follower])
    if len(order) < len(names):
        cycle = _cycle({name for name in names if waits[name]}, followers)
        if len(cycle) > LONGEST_CYCLE:
            more = f"… {len(cycle) - LONGEST_CYCLE:,} more …"
            cycle = [*cycle[: LONGEST_CYCLE // 2], more, *cycle[-LONGEST_CYCLE // 2 :]]
        raise InvalidWorkflow(f"The steps form a cycle: {' → '.join(cycle)}.")
    return order


def _cycle(left: set[str], followers: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a cycle among the steps that no order can hold, its first step again at its end."""
    # Each of them waits for another of them: going back must meet a step twice.
    needed: dict[str, str] = {}
    for name in sorted(left):
        for follower in followers[name]:
            if follower in left:
                needed.setdefault(follower, name)
    met: dict[str, int] = {}
    way: list[str] = []
    name = min(left)
    while name not in met:
        met[name] = len(way)
        way.append(name)
        name = needed[name]
    return [name, *reversed(way[met[name] :])]


def check_graph(graph: Graph, *, depth: int = 1) -> None:
    """Raise `InvalidWorkflow` if a graph exceeds a bound or has a cycle."""
    check_name(graph.name, what="workflow")
    check_nesting(depth, graph.name)
    check_step_count(len(graph.steps))
    check_edge_count(len(graph.edges))
    check_member_count(graph.members)
    for step in graph.steps:
        check_name(step.name, what="step")
        check_call_count(len(step.calls or step.parts), step.name)
        for child in step.children:
            check_graph(child, depth=depth + 1)
    if len(graph.by_name) < len(graph.steps):
        names = [step.name for step in graph.steps]
        double = next(name for name in names if names.count(name) > 1)
        raise InvalidWorkflow(f"Two steps are named {double!r}.")
    for edge in graph.edges:
        check_known(edge.upstream, graph.by_name, by=f"Step {edge.downstream!r}")
        check_known(edge.downstream, graph.by_name, by="A dependency")
    in_order([step.name for step in graph.steps], graph.edges)
