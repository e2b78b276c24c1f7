"""The fate of a step, as the design says it: the reference for engines and random runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from taskqueue.core.workflow_states import FINAL_STEPS, After, OnFailure, StepStatus
from taskqueue.declarations.workflows.graph import Edge, Graph

# Ends of a step after which edges of each kind are taken.
TAKEN = {
    After.SUCCEEDED: {StepStatus.SUCCEEDED},
    After.FAILED: {StepStatus.FAILED},
    After.ENDED: {StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED},
}


def fate(edges: Iterable[Edge], ends: Mapping[str, StepStatus], forgiven: set[str]) -> StepStatus:
    """Return what becomes of a step whose dependencies have all ended: `running` if it is released.

    `forgiven` are the steps whose failure lets others go on.
    """
    listed = list(edges)
    is_taken = not listed
    for edge in listed:
        end = ends[edge.upstream]
        if edge.when is After.SUCCEEDED and end in (StepStatus.FAILED, StepStatus.CANCELLED):
            if end is StepStatus.CANCELLED or edge.upstream not in forgiven:
                return StepStatus.CANCELLED
            is_taken = True
        is_taken = is_taken or end in TAKEN[edge.when]
    return StepStatus.RUNNING if is_taken else StepStatus.SKIPPED


def run(
    graph: Graph,
    choose: Callable[[list[str]], str],
    end: Callable[[str], StepStatus],
) -> tuple[list[str], dict[str, StepStatus]]:
    """Run a graph by the rules: return the steps in the order of their release, and their ends.

    `choose` takes one of the running steps, and `end` says how it ends.
    """
    forgiven = {step.name for step in graph.steps if step.on_failure is OnFailure.CONTINUE}
    needs: dict[str, list[Edge]] = {step.name: [] for step in graph.steps}
    for edge in graph.edges:
        needs[edge.downstream].append(edge)
    statuses = dict.fromkeys(needs, StepStatus.WAITING)
    released: list[str] = []
    while True:
        moved = True
        while moved:
            moved = False
            for name, edges in needs.items():
                is_due = all(statuses[edge.upstream] in FINAL_STEPS for edge in edges)
                if statuses[name] is StepStatus.WAITING and is_due:
                    statuses[name] = fate(edges, statuses, forgiven)
                    moved = True
                    if statuses[name] is StepStatus.RUNNING:
                        released.append(name)
        running = [name for name, status in statuses.items() if status is StepStatus.RUNNING]
        if not running:
            return released, statuses
        name = choose(running)
        statuses[name] = end(name)
