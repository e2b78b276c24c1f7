"""Canvas: signatures, and the chains that are made of them.

A canvas is immutable. It becomes steps of a graph when it is enqueued, or added to another canvas,
a builder or a fan-out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from asgiref.sync import sync_to_async

from taskqueue.core.workflow_states import After, StepKind
from taskqueue.declarations.hooks import ENQUEUE_GRAPH
from taskqueue.declarations.workflows.assembly import (
    Assembly,
    Entry,
    Placed,
    inputs_of,
    result_of,
    shortened,
    text_of,
)
from taskqueue.declarations.workflows.calls import (
    BuildsGraph,
    Callee,
    Shape,
    check_shapes,
    check_step,
    with_first,
)
from taskqueue.declarations.workflows.checking import check_canvas_nesting, check_graph
from taskqueue.declarations.workflows.graph import Callback, CompiledCall, Graph, Step
from taskqueue.declarations.workflows.reference_data import Target
from taskqueue.declarations.workflows.references import Reference
from taskqueue.exceptions import InvalidWorkflow


@dataclass(frozen=True, eq=False, kw_only=True)
class Canvas(ABC):
    """Calls that become steps of a workflow. `|` chains two of them."""

    callbacks: tuple[tuple[After, Canvas], ...] = ()
    # How many canvases lie within each other here.
    levels: int = 1

    def __or__(self, other: Canvas) -> Canvas:
        return chain_of([self, other])

    def on_success(self, canvas: Canvas) -> Self:
        """Return the canvas with another one that receives the result if it succeeds."""
        return self._followed(After.SUCCEEDED, canvas)

    def on_failure(self, canvas: Canvas) -> Self:
        """Return the canvas with another one that receives the error if it fails."""
        return self._followed(After.FAILED, canvas)

    def on_end(self, canvas: Canvas) -> Self:
        """Return the canvas with another one that receives the result or None when it ends."""
        return self._followed(After.ENDED, canvas)

    def _followed(self, when: After, canvas: Canvas) -> Self:
        levels = max(self.levels, require_canvas(canvas).levels + 1)
        check_canvas_nesting(levels)
        return replace(self, callbacks=(*self.callbacks, (when, canvas)), levels=levels)

    @property
    @abstractmethod
    def default_name(self) -> str:
        """Return the default name of its step."""

    @property
    def kind_name(self) -> str:
        """Return the name of a workflow that consists of it alone."""
        return self.default_name

    @property
    def is_list(self) -> bool:
        """Whether its result is the list of its members' results."""
        return False

    def limited(self, *, concurrency: int | None, tolerate: int | float | None) -> Canvas:
        """Return it with other limits of its members. Raises `InvalidWorkflow` if it has none."""
        if concurrency is None and tolerate is None:
            return self
        raise InvalidWorkflow(
            f"{self.default_name}: concurrency and tolerate are for groups and maps."
        )

    def place(self, assembly: Assembly, name: str | None, entry: Entry) -> Placed:
        """Add its steps to a graph, the last under this name; None where it is all of the graph.

        Raises `InvalidWorkflow`.
        """
        placed = self.place_steps(assembly, name, entry)
        for when, canvas in self.callbacks:
            first, ends = result_of(placed.last), [(placed.last, when)]
            if when is After.FAILED:
                first = Target(steps=placed.steps, part="error")
                ends = [(step, when) for step in placed.steps]
            before = assembly.taken.copy()
            inner = inner_name(assembly, name, canvas)
            canvas.place(assembly, inner, Entry(first=text_of(first), after=tuple(ends)))
            assembly.handlers |= assembly.taken - before
        return placed

    def enqueue(self) -> Any:
        """Write it as a workflow in the caller's transaction, and return the handle on that.

        Raises `InvalidWorkflow` before anything is written.
        """
        return ENQUEUE_GRAPH[0](self.build())

    async def aenqueue(self) -> Any:
        """Async version of `enqueue`."""
        return await sync_to_async(self.enqueue, thread_sensitive=True)()

    @abstractmethod
    def place_steps(self, assembly: Assembly, name: str | None, entry: Entry) -> Placed:
        """Add its steps to a graph as `place` does, without its callbacks."""

    def build(self, *, name: str = "", depth: int = 1) -> Graph:
        """Return the graph of a workflow that is this canvas alone. Raises `InvalidWorkflow`."""
        assembly = Assembly(depth=depth)
        placed = self.place_steps(assembly, None, Entry())
        graph = Graph(
            name=name or shortened(self.kind_name),
            steps=assembly.ordered_steps(),
            edges=tuple(assembly.edges),
            last=(placed.last,),
            callbacks=tuple(workflow_callback(when, call) for when, call in self.callbacks),
        )
        check_graph(graph, depth=depth)
        return graph


def inner_name(assembly: Assembly, name: str | None, canvas: Canvas) -> str:
    """Return a free name for a part of a canvas of that name."""
    own = canvas.default_name
    return assembly.free_name(own if name is None else f"{name}.{own}")


def require_canvas(value: object) -> Canvas:
    """Return the canvas. Raises `InvalidWorkflow` for anything else."""
    if isinstance(value, Canvas):
        return value
    if isinstance(value, Reference):
        raise InvalidWorkflow(
            f"{value!r} stands for a result. Use it as an argument of a step, or in after=."
        )
    raise InvalidWorkflow(
        f"A canvas is made of signatures, such as send.s(1), not of {type(value).__name__}. Use "
        "group(...) for a list of them."
    )


def workflow_callback(when: After, canvas: Canvas) -> Callback:
    """Return the callback for an end of a whole workflow. Raises `InvalidWorkflow`."""
    if not isinstance(canvas, StepCall) or canvas.callbacks or canvas.references:
        raise InvalidWorkflow(
            "A callback of a whole workflow is one call of a task, with arguments that are known. "
            "Use a chain, or steps with after=, for more."
        )
    first = "" if canvas.is_immutable else text_of(
        Target(part="error" if when is After.FAILED else "result")
    )  # fmt: skip
    check_shapes(f"after {when.value}", canvas.callee, [canvas.shape], first=bool(first))
    call = canvas.compiled(first)
    if call.definition is None:
        raise InvalidWorkflow(
            f"{call.name} is a workflow. A callback of a whole workflow is one call of a task."
        )
    return Callback(when, call)


@dataclass(frozen=True, eq=False, kw_only=True, init=False)
class StepCall(Canvas):
    """A signature: one call of a definition or a workflow, its arguments as they are stored."""

    callee: Callee
    args: str
    kwargs: str
    shape: Shape
    references: tuple[Reference, ...] = ()
    # Whether the result of the step before is left out.
    is_immutable: bool = False

    def __init__(
        self,
        callee: Callee,
        args: str,
        kwargs: str,
        shape: Shape,
        references: tuple[Reference, ...] = (),
        *,
        is_immutable: bool = False,
        **more: Any,
    ) -> None:
        # A group has very many of them, and a frozen dataclass takes twice as long for each field.
        own = self.__dict__
        own["callee"] = callee
        own["args"] = args
        own["kwargs"] = kwargs
        own["shape"] = shape
        own["references"] = references
        own["is_immutable"] = is_immutable
        if more:
            own.update(more)

    @property
    def default_name(self) -> str:
        return shortened(self.callee.name.rpartition(".")[2])

    def first(self, entry: Entry) -> str:
        """Return the reference that comes first in its arguments; empty for none."""
        return "" if self.is_immutable else entry.first

    def compiled(self, first: str) -> CompiledCall:
        """Return the call with a reference as its first argument, or without."""
        definition = None if isinstance(self.callee, BuildsGraph) else self.callee
        return CompiledCall(
            name=self.callee.name,
            args=with_first(first, self.args),
            kwargs=self.kwargs,
            definition=definition,
        )

    def place_steps(self, assembly: Assembly, name: str | None, entry: Entry) -> Placed:
        own = name or assembly.free_name(self.default_name)
        first = self.first(entry)
        check_step(own, self.callee, [self.shape], first=bool(first))
        call = self.compiled(first)
        kind, graph = StepKind.TASK, None
        if isinstance(self.callee, BuildsGraph):
            kind = StepKind.WORKFLOW
            graph = self.callee.compile(call.args, call.kwargs, depth=assembly.depth + 1)
        inputs = inputs_of(first, self.references)
        step = Step(name=own, kind=kind, call=call, graph=graph, inputs=inputs)
        return assembly.add(step, entry, self.references)

    def build(self, *, name: str = "", depth: int = 1) -> Graph:
        if not isinstance(self.callee, BuildsGraph):
            return super().build(name=name, depth=depth)
        for reference in self.references:
            Assembly().require_own(reference, self.default_name)
        check_shapes(self.default_name, self.callee, [self.shape], first=False)
        graph = self.callee.compile(self.args, self.kwargs, depth=depth)
        more = tuple(workflow_callback(when, call) for when, call in self.callbacks)
        return replace(graph, name=name or graph.name, callbacks=(*graph.callbacks, *more))


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain(Canvas):
    """Calls one after another, each of which receives the previous result."""

    parts: tuple[Canvas, ...]

    @property
    def default_name(self) -> str:
        return "chain"

    @property
    def kind_name(self) -> str:
        first = self.parts[0]
        word = "chord" if first.is_list and len(self.parts) == 2 else "chain"
        return f"{word}({first.default_name})"

    def place_steps(self, assembly: Assembly, name: str | None, entry: Entry) -> Placed:
        steps: list[str] = []
        for part in self.parts[:-1]:
            placed = part.place(assembly, inner_name(assembly, name, part), entry)
            steps += placed.steps
            entry = entry.following(placed.last)
        placed = self.parts[-1].place(assembly, name, entry)
        return Placed(placed.last, (*steps, *placed.steps))


def chain_of(canvases: Iterable[Any]) -> Canvas:
    """Return the canvases one after another. Raises `InvalidWorkflow`."""
    parts: list[Canvas] = []
    levels = 1
    for canvas in map(require_canvas, canvases):
        if isinstance(canvas, Chain) and not canvas.callbacks:
            parts += canvas.parts
            levels = max(levels, canvas.levels)
        else:
            parts.append(canvas)
            levels = max(levels, canvas.levels + 1)
    if not parts:
        raise InvalidWorkflow("A chain needs at least one call.")
    check_canvas_nesting(levels)
    return parts[0] if len(parts) == 1 else Chain(parts=tuple(parts), levels=levels)
