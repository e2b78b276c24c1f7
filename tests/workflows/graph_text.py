"""A graph as short lines, for tests to compare."""

from __future__ import annotations

from taskqueue.core.workflow_states import After
from taskqueue.declarations.workflows.graph import CompiledCall, Graph, Step

ARROWS = {After.SUCCEEDED: "->", After.FAILED: "-failed->", After.ENDED: "-ended->"}


def steps(graph: Graph) -> dict[str, str]:
    """Return what each step runs, with its arguments as they are stored."""
    return {step.name: _of(step) for step in graph.steps}


def edges(graph: Graph) -> set[str]:
    """Return the dependencies, each as one line."""
    return {f"{edge.upstream} {ARROWS[edge.when]} {edge.downstream}" for edge in graph.edges}


def _of(step: Step) -> str:
    if step.value is not None:
        return f"join {step.value}"
    if step.call is None:
        parts = (call(part.call) + (" workflow" if part.graph else "") for part in step.parts)
        return f"[{', '.join(parts)}]"
    if step.source is not None:
        source = step.source
        return f"{call(step.call)} for {source.spread.value} {source.items}"
    if step.calls or step.kind == "map":
        name = step.call.name.rpartition(".")[2]
        return " ".join([f"{name}*{len(step.calls)}", *(args for args, _ in step.calls)])
    return call(step.call)


def call(compiled: CompiledCall) -> str:
    """Return a call as it is stored, without the module of its function."""
    kwargs = "" if compiled.kwargs == "{}" else compiled.kwargs
    return f"{compiled.name.rpartition('.')[2]}{compiled.args}{kwargs}"
