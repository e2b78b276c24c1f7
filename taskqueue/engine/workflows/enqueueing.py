"""Enqueueing workflows: their rows and the release of their roots, in the caller's transaction."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue.declarations.workflows.graph import Graph
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.workflows.advancing import Advance
from taskqueue.engine.workflows.inserting import ALONE, Origin, insert_or_find
from taskqueue.engine.workflows.tasks import Unsent
from taskqueue.models import Workflow


def enqueue_workflow(
    connection: BaseDatabaseWrapper, graph: Graph, *, origin: Origin = ALONE
) -> tuple[Workflow, bool]:
    """Insert a graph and begin it, or find the workflow with its unique key.

    Return whether it is new. Raises `DuplicateWorkflow` if the graph is a duplicate and says that
    duplicates raise.
    """
    with atomic(using=connection.alias):
        now = dialect_for(connection).now(connection)
        unsent: Unsent = {}
        workflow, is_new = insert_or_find(connection, graph, now=now, origin=origin, unsent=unsent)
        if is_new:
            Advance(connection, [workflow], now=now, most_members=None, unsent=unsent).begin()
    return workflow, is_new
