"""Groups of different calls with limits: one step, whose members have their own definitions.

A part that is more than one task becomes a child workflow. The results of other steps that it reads
become its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from taskqueue.core.workflow_states import After, StepKind
from taskqueue.declarations.workflows.assembly import (
    Assembly,
    Entry,
    Placed,
    inputs_of,
    shortened,
    text_of,
)
from taskqueue.declarations.workflows.canvas import Canvas, StepCall
from taskqueue.declarations.workflows.graph import CompiledCall, Graph, Part, Step
from taskqueue.declarations.workflows.reference_data import Target, targets_in


def place_parts(
    assembly: Assembly,
    name: str,
    entry: Entry,
    canvases: Sequence[Canvas],
    *,
    concurrency: int | None,
    tolerate: int | float,
) -> Placed:
    """Add one step that runs these canvases as its members. Raises `InvalidWorkflow`."""
    parts: list[Part] = []
    after = dict.fromkeys(entry.after)
    inputs = dict.fromkeys(inputs_of(entry.first))
    for canvas in canvases:
        inner = _Inner(assembly, canvas, entry)
        parts.append(inner.part())
        after |= dict.fromkeys(inner.after)
        inputs |= dict.fromkeys(inner.inputs)
    step = Step(
        name=name, kind=StepKind.MAP, parts=tuple(parts), inputs=tuple(inputs),
        concurrency=concurrency, tolerate=tolerate,
    )  # fmt: skip
    return assembly.add(step, replace(entry, after=tuple(after)))


class _Inner:
    """The steps of one canvas, apart from those outside that they need."""

    def __init__(self, assembly: Assembly, canvas: Canvas, entry: Entry) -> None:
        is_call = isinstance(canvas, StepCall) and not canvas.callbacks
        self._canvas = canvas
        self._assembly = inner = Assembly(
            depth=assembly.depth if is_call else assembly.depth + 1,
            owner=assembly.owner,
            # A name means one step, whether that is outside or within.
            taken=assembly.taken.copy(),
        )
        placed = canvas.place(inner, None, Entry(first=entry.first, named=entry.named))
        self._last = placed.last
        outside = [edge for edge in inner.edges if edge.upstream not in inner.steps]
        for edge in outside:
            del inner.edges[edge]
        # The ends that it waits for, and the steps that it reads.
        self.after: list[tuple[str, After]] = [(edge.upstream, edge.when) for edge in outside]
        read = [name for step in inner.steps.values() for name in step.inputs]
        self.inputs = [name for name in read if name not in inner.steps]

    def part(self) -> Part:
        """Return the member: one task or child workflow, or else a workflow of these steps."""
        (step, *others) = self._assembly.steps.values()
        if not others and step.kind in (StepKind.TASK, StepKind.WORKFLOW):
            assert step.call is not None
            return Part(call=step.call, graph=step.graph)
        lifting = _Lifting(self._assembly.steps.keys())
        name = shortened(self._canvas.kind_name)
        steps = tuple(map(lifting.step, self._assembly.ordered_steps()))
        edges, arguments = tuple(self._assembly.edges), lifting.arguments
        graph = Graph(name=name, steps=steps, edges=edges, last=(self._last,), args=arguments)
        return Part(call=CompiledCall(name=name, args=arguments), graph=graph)


class _Lifting:
    """Replaces references to other steps outside a workflow by references to its arguments."""

    def __init__(self, own: Collection[str]) -> None:
        self._own = own
        # The places of the arguments, by the references that they are.
        self._places: dict[str, int] = {}

    @property
    def arguments(self) -> str:
        """Return the arguments of the workflow, as JSON text."""
        return f"[{','.join(self._places)}]"

    def step(self, step: Step) -> Step:
        """Return a step that refers to arguments and to other steps of its workflow alone."""
        source = step.source
        return replace(
            step,
            call=step.call and self._call(step.call),
            calls=tuple((self._text(args), self._text(kwargs)) for args, kwargs in step.calls),
            source=source and replace(source, items=self._text(source.items)),
            parts=tuple(
                Part(call=self._call(part.call), graph=part.graph and self._graph(part.graph))
                for part in step.parts
            ),
            graph=step.graph and self._graph(step.graph),
            value=step.value and self._text(step.value),
            inputs=tuple(name for name in step.inputs if name in self._own),
        )

    def _call(self, call: CompiledCall) -> CompiledCall:
        return replace(call, args=self._text(call.args), kwargs=self._text(call.kwargs))

    def _graph(self, graph: Graph) -> Graph:
        """Return a child workflow of which only the arguments refer to steps outside of it."""
        return replace(graph, args=self._text(graph.args), kwargs=self._text(graph.kwargs))

    def _text(self, text: str) -> str:
        """Return JSON text with other references. All else stays as it was written."""
        found = [text_of(target) for target in targets_in(text) if not self._is_own(target)]
        if not found:
            return text
        return re.sub("|".join(map(re.escape, found)), self._argument, text)

    def _is_own(self, target: Target) -> bool:
        return bool(target.steps) and all(name in self._own for name in target.steps)

    def _argument(self, reference: re.Match[str]) -> str:
        place = self._places.setdefault(reference.group(), len(self._places))
        return text_of(Target(argument=place))
