"""Pictures of workflows, from their rows: names, statuses and counts, no arguments."""

from __future__ import annotations

from taskqueue.core.workflow_states import After, StepKind
from taskqueue.declarations.workflows.drawing import Link, Picture, Progress, node_of, picture
from taskqueue.engine.connections import database_alias
from taskqueue.models import Dependency, Step, Workflow

COUNTS = ("members", "released", "ended", "failures")


def picture_of_workflow(workflow: Workflow) -> Picture:
    """Return the drawing of a workflow from its current rows, by two queries."""
    steps = Step.objects.using(database_alias()).filter(workflow_id=workflow.id).order_by("id")
    rows = list(
        steps.values("id", "name", "kind", "request__name", "parent_step_id", "status", *COUNTS)
    )
    names = {row["id"]: row["name"] for row in rows}
    nodes = [
        node_of(
            row["name"],
            StepKind(row["kind"]),
            row["request__name"] or "",
            Progress(status=row["status"], **{name: row[name] or 0 for name in COUNTS}),
        )
        for row in rows
    ]
    edges = Dependency.objects.using(database_alias()).filter(downstream__workflow_id=workflow.id)
    links = [
        Link(names[upstream], names[downstream], After(when))
        for upstream, downstream, when in edges.values_list("upstream_id", "downstream_id", "when")
        if upstream in names and downstream in names
    ]
    # A step that a fan-out made is drawn behind the step whose task returned it.
    links += [
        Link(names[row["parent_step_id"]], row["name"])
        for row in rows
        if row["parent_step_id"] in names
    ]
    return picture(workflow.name, nodes, links)
