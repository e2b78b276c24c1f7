"""Enqueue workflows: from code, and by hand with an audit entry."""

from __future__ import annotations

from django.db.transaction import atomic

from taskqueue import signals, tracing
from taskqueue.declarations.workflows.canvas import Canvas
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.declarations.workflows.workflow import workflows
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import Act, audit, person
from taskqueue.engine.workflows import verbs
from taskqueue.engine.workflows.enqueueing import enqueue_workflow
from taskqueue.models import Workflow
from taskqueue.results.workflows import WorkflowRun


def enqueue_graph(graph: Graph) -> WorkflowRun:
    """Write a workflow in the caller's transaction, and return the handle on it.

    Raises `DuplicateWorkflow` under `on_duplicate="raise"`, and what the database raises.
    """
    row, is_new = _write(graph)
    run = WorkflowRun(row, created=is_new)
    if is_new and signals.workflow_enqueued.receivers:
        signals.workflow_enqueued.send(workflows.find(row.name) or Canvas, run=run)
    return run


def _write(graph: Graph) -> tuple[Workflow, bool]:
    if tracing.active is None:
        return enqueue_workflow(project_connection(), graph)
    with tracing.active.sending_workflow(
        graph.name, steps=len(graph.steps), tasks=graph.members
    ) as span:
        row, is_new = enqueue_workflow(project_connection(), graph)
        span.set_attribute("taskqueue.workflow.id", str(row.id))
        span.set_attribute("taskqueue.created", is_new)
        return row, is_new


def enqueue_graph_by_hand(graph: Graph, *, by: object = "", reason: str = "") -> WorkflowRun:
    """Enqueue a workflow with an audit entry. Raises as `enqueue_graph` does."""
    connection = project_connection()
    with atomic(using=connection.alias):
        run = enqueue_graph(graph)
        if run.created:
            act = Act(str(run.id), detail=run.name)
            audit(connection, verbs.NOUN, "enqueue", [act], person=person(by, reason))
    return run
