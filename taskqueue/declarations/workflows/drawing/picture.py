"""The picture of a workflow: nodes for its steps with their progress, or for groups of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskqueue.core.workflow_states import After, StepKind, StepStatus
from taskqueue.declarations.workflows.graph import Graph, Step

# More nodes are drawn as fewer, each of which stands for many steps.
MAX_NODES = 300
# The status of a node of several steps: the first of these that one of them has.
PRECEDENCE = (
    StepStatus.FAILED, StepStatus.RUNNING, StepStatus.CANCELLED, StepStatus.WAITING,
    StepStatus.SUCCEEDED, StepStatus.SKIPPED,
)  # fmt: skip
# The order of the parts of a bar.
BAR = (
    StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.SKIPPED,
    StepStatus.RUNNING, StepStatus.WAITING,
)  # fmt: skip
TIMES = "\N{MULTIPLICATION SIGN}"
Shares = tuple[tuple[StepStatus, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a step has come: the columns of its row."""

    status: str = StepStatus.WAITING.value
    members: int = 1
    released: int = 0
    ended: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A box of the picture: one step, or several of one definition and depth."""

    name: str
    kind: StepKind
    # The definition or workflow that it calls; empty for none, or for several.
    calls: str
    status: StepStatus = StepStatus.WAITING
    # Of a map its members by their status, of several steps these; else nothing.
    shares: Shares = ()
    # The number of steps that it stands for.
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow of the picture, between nodes by their names."""

    upstream: str
    downstream: str
    when: After = After.SUCCEEDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The nodes of a workflow in layers: each comes after all that it follows."""

    name: str
    layers: tuple[tuple[Node, ...], ...]
    links: tuple[Link, ...]
    # The steps of the whole workflow, by status.
    counts: Mapping[StepStatus, int]

    @property
    def nodes(self) -> list[Node]:
        """Return all nodes, layer by layer."""
        return [node for layer in self.layers for node in layer]

    @property
    def steps(self) -> int:
        """Return the number of steps of the workflow."""
        return sum(self.counts.values())


def node_of(name: str, kind: StepKind, calls: str, progress: Progress) -> Node:
    """Return the node of a step."""
    shares = _shares_of_map(progress) if kind is StepKind.MAP else ()
    status = StepStatus(progress.status)
    return Node(name=name, kind=kind, calls=calls, status=status, shares=shares)


def _shares_of_map(progress: Progress) -> Shares:
    unreleased = StepStatus.WAITING
    if progress.status in (StepStatus.FAILED, StepStatus.CANCELLED, StepStatus.SKIPPED):
        unreleased = StepStatus.CANCELLED  # They will not be sent.
    counts = Counter(
        {
            StepStatus.SUCCEEDED: progress.ended - progress.failures,
            StepStatus.FAILED: progress.failures,
            StepStatus.RUNNING: progress.released - progress.ended,
        }
    )
    counts[unreleased] += progress.members - progress.released
    return _shares(counts)


def _shares(counts: Mapping[StepStatus, int]) -> Shares:
    return tuple((status, counts[status]) for status in BAR if counts.get(status, 0) > 0)


def picture_of(graph: Graph, progress: Mapping[str, Progress] | None = None) -> Picture:
    """Return the picture of a graph; steps without progress wait."""
    known = progress or {}
    nodes = [
        node_of(step.name, step.kind, step.call.name if step.call else "", known.get(
            step.name, _at_start(step)
        ))
        for step in graph.steps
    ]  # fmt: skip
    links = [Link(edge.upstream, edge.downstream, edge.when) for edge in graph.edges]
    return picture(graph.name, nodes, links)


def _at_start(step: Step) -> Progress:
    return Progress(members=step.members or 0)


def picture(name: str, nodes: Sequence[Node], links: Iterable[Link]) -> Picture:
    """Return the picture of nodes; of more than `MAX_NODES` each stands for several steps.

    The links must not go in cycles; those to unknown nodes are left out.
    """
    known = {node.name for node in nodes}
    drawn = [link for link in links if link.upstream in known and link.downstream in known]
    depths = depths_of([node.name for node in nodes], drawn)
    counts = Counter(node.status for node in nodes)
    if len(nodes) > MAX_NODES:
        nodes, drawn, depths = _collapsed(nodes, drawn, depths)
    layers: list[list[Node]] = [[] for _ in range(max(depths.values(), default=-1) + 1)]
    for node in nodes:
        layers[depths[node.name]].append(node)
    filled = tuple(tuple(layer) for layer in layers if layer)
    return Picture(name=name, layers=filled, links=tuple(dict.fromkeys(drawn)), counts=counts)


def depths_of(names: Sequence[str], links: Iterable[Link]) -> dict[str, int]:
    """Return the length of the longest way to each node."""
    followers: dict[str, list[str]] = {name: [] for name in names}
    waits = dict.fromkeys(names, 0)
    for upstream, downstream in {(link.upstream, link.downstream) for link in links}:
        followers[upstream].append(downstream)
        waits[downstream] += 1
    depths = dict.fromkeys(names, 0)
    free = [name for name in names if not waits[name]]
    for name in free:  # Grows while it is read.
        for follower in followers[name]:
            depths[follower] = max(depths[follower], depths[name] + 1)
            waits[follower] -= 1
            if not waits[follower]:
                free.append(follower)
    return depths


def _collapsed(
    nodes: Sequence[Node], links: Sequence[Link], depths: Mapping[str, int]
) -> tuple[list[Node], list[Link], dict[str, int]]:
    """Return at most `MAX_NODES` nodes, by depth and definition, then by ever coarser depth."""
    deepest = max(depths.values()) + 1
    bands = deepest
    groups = _grouped(nodes, lambda node: (depths[node.name], node.kind, node.calls))
    while len(groups) > MAX_NODES and bands > 1:
        bands = max(1, min(MAX_NODES, bands // 2))
        groups = _grouped(
            nodes, lambda node: (depths[node.name] * bands // deepest, node.kind, node.calls)  # noqa: B023
        )  # fmt: skip
    if len(groups) > MAX_NODES:  # As many definitions: only depth is left.
        bands = min(MAX_NODES, deepest)
        groups = _grouped(nodes, lambda node: (depths[node.name] * bands // deepest,))
    merged = [_merged(group) for group in groups.values()]
    new_names = {
        node.name: whole.name
        for whole, group in zip(merged, groups.values(), strict=True)
        for node in group
    }
    new_depths = {
        whole.name: depths[group[0].name] * bands // deepest
        for whole, group in zip(merged, groups.values(), strict=True)
    }
    renamed = (Link(new_names[x.upstream], new_names[x.downstream], x.when) for x in links)
    # Within one band arrows may go to and fro.
    kept = [link for link in renamed if new_depths[link.upstream] < new_depths[link.downstream]]
    return merged, kept, new_depths


def _grouped(
    nodes: Iterable[Node], key: Callable[[Node], tuple[object, ...]]
) -> dict[tuple[object, ...], list[Node]]:
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        groups.setdefault(key(node), []).append(node)
    return groups


def _merged(nodes: Sequence[Node]) -> Node:
    """Return one node for several; a single one is returned unchanged."""
    if len(nodes) == 1:
        return nodes[0]
    counts = Counter(node.status for node in nodes)
    calls = {node.calls for node in nodes}
    kinds = {node.kind for node in nodes}
    return Node(
        name=nodes[0].name,
        kind=kinds.pop() if len(kinds) == 1 else StepKind.TASK,
        calls=calls.pop() if len(calls) == 1 else "",
        status=next(status for status in PRECEDENCE if counts[status]),
        shares=_shares(counts),
        steps=len(nodes),
    )


def picture_to_json(picture: Picture) -> dict[str, Any]:
    """Return the picture as JSON: nodes with their layer, links, and steps by status."""
    return {
        "name": picture.name,
        "steps": picture.steps,
        "counts": {status.value: count for status, count in _shares(picture.counts)},
        "nodes": [
            {
                "name": node.name, "kind": node.kind.value, "calls": node.calls,
                "status": node.status.value, "steps": node.steps, "layer": layer,
                "shares": {status.value: count for status, count in node.shares},
            }
            for layer, nodes in enumerate(picture.layers)
            for node in nodes
        ],
        "links": [
            {"from": link.upstream, "to": link.downstream, "when": link.when.value}
            for link in picture.links
        ],
    }  # fmt: skip
