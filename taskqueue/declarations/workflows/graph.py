"""A workflow in its compiled form: what is inserted as rows, and what schedules store.

Arguments are JSON text in which a reference stands as data: `{"$step": "load", "path": ["rows"]}`
is a part of the result of a step, with `"part": "error"` of its error. See `references`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from taskqueue.core.workflow_states import After, OnFailure, Spread, StepKind
from taskqueue.declarations.definition import BaseDefinition

# Of the stored form: raise it with every change that an older version would misread.
FORMAT = 1

# Positional and keyword arguments of one call, as JSON text: a list and an object.
Arguments = tuple[str, str]
NO_KEYWORDS = "{}"
NO_ARGUMENTS: Arguments = ("[]", NO_KEYWORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledCall:
    """A call of a definition, or of a child workflow, by its name."""

    name: str
    args: str = "[]"
    kwargs: str = "{}"
    # The spec of its enqueue as it is stored. None: it is made of the definition below, which
    # only a graph has that was built in this process.
    options: Mapping[str, Any] | None = field(default=None, hash=False)
    definition: BaseDefinition[Any, Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The list of which a map's calls are made when it is released."""

    # A reference, as JSON text.
    items: str
    spread: Spread
    # The items of one call of `Spread.CHUNKS`.
    size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A member of a group of unlike calls: a task, or a child workflow if it has a graph."""

    call: CompiledCall
    graph: Graph | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: a task, a map of many, a child workflow, or a join.

    A task has a `call`. A map has a `call` that tells the definition and options of its members,
    and either `calls`, the arguments of each, or `source`: then the arguments of `call` stand
    before those that an item gives; or, without a `call`, unlike `parts`. A child has a `call` with
    its name and arguments, and its `graph`. A join has `value`: its result, with references.
    """

    name: str
    kind: StepKind
    call: CompiledCall | None = None
    calls: tuple[Arguments, ...] = ()
    source: Source | None = None
    parts: tuple[Part, ...] = ()
    graph: Graph | None = None
    value: str | None = None
    # The steps whose results or errors it reads.
    inputs: tuple[str, ...] = ()
    # A condition (see `conditions`); the step is skipped if it is false.
    when: Mapping[str, Any] | None = field(default=None, hash=False)
    on_failure: OnFailure = OnFailure.FAIL
    # How many members are sent at once; None for all.
    concurrency: int | None = None
    # How many members may fail; below 1, their share of all.
    tolerate: int | float = 0
    compensate: CompiledCall | None = None

    @property
    def members(self) -> int | None:
        """Return the number of tasks or workflows that it runs; None until it is released."""
        if self.kind is StepKind.MAP:
            return None if self.source else len(self.calls or self.parts)
        return 0 if self.kind is StepKind.JOIN else 1

    @property
    def children(self) -> list[Graph]:
        """Return the graphs of the child workflows that it runs."""
        graphs = (self.graph, *(part.graph for part in self.parts))
        return [graph for graph in graphs if graph is not None]


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency: `downstream` runs after that end of `upstream`."""

    upstream: str
    downstream: str
    when: After = After.SUCCEEDED


@dataclass(frozen=True, slots=True)
class Callback:
    """A call that is enqueued when the whole workflow ends so.

    The references in its arguments name no step: `{"$workflow": "result"}` is the return value of
    the workflow, `{"$workflow": "error"}` its error.
    """

    when: After
    call: CompiledCall


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A compiled workflow. Its steps are in an order in which each follows all that it needs."""

    name: str
    steps: tuple[Step, ...]
    edges: tuple[Edge, ...] = ()
    # The steps whose results are the workflow's: of one its result, of several an object by name.
    last: tuple[str, ...] = ()
    format: int = FORMAT
    # What the project says of its own changes.
    version: str = ""
    # Of the call that built it. Those of a child may refer to steps of its parent; its own steps
    # refer to them as `{"$argument": 0}` or `{"$argument": "day"}`.
    args: str = "[]"
    kwargs: str = "{}"
    # Names of arguments and context keys whose values are redacted.
    sensitive: frozenset[str] = frozenset()
    # From the start; an aware datetime is a point in time.
    deadline: timedelta | datetime | None = None
    retention: timedelta | None = None
    fail_fast: bool = False
    unique_key: str | None = None
    # What an enqueue does if another workflow holds the key: "return" or "raise".
    on_duplicate: str = "return"
    callbacks: tuple[Callback, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Step]:
        """Return the steps by their names."""
        return {step.name: step for step in self.steps}

    @cached_property
    def members(self) -> int:
        """Return the number of members that are known now, with those of its children."""
        own = sum(step.members or 0 for step in self.steps)
        return own + sum(graph.members - 1 for step in self.steps for graph in step.children)
