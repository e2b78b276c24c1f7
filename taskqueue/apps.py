"""The Django app."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from taskqueue.core.garbage import pause_collections, resume_collections

if TYPE_CHECKING:
    from taskqueue.declarations.definition import BaseDefinition
    from taskqueue.declarations.workflows.graph import Graph
    from taskqueue.results.workflows import WorkflowRun

# Before the models are imported.
if sys.argv[1:2] in (["runworker"], ["taskqueue_worker"]):
    pause_collections()


class TaskQueueConfig(AppConfig):
    """A task queue in the project's own database."""

    name = "taskqueue"
    verbose_name = _("Task queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        resume_collections()
        from taskqueue import tracing
        from taskqueue.declarations.checks import (
            check_definitions,
            check_settings,
            check_transactions,
        )
        from taskqueue.declarations.hooks import ENQUEUE_GRAPH, FINDERS

        checks.register(check_settings)
        checks.register(check_transactions, checks.Tags.database)
        checks.register(check_definitions)
        ENQUEUE_GRAPH[:] = [_enqueue_graph]
        FINDERS[:] = [_adopt_django_task]
        tracing.refresh()


def _adopt_django_task(name: str) -> BaseDefinition[Any, Any] | None:
    """Return a task of Django's framework that was declared for another of its backends."""
    if sys.modules.keys().isdisjoint(("django.tasks", "django_tasks")):
        return None
    from taskqueue.backend import adopt

    return adopt(name)


def _enqueue_graph(graph: Graph) -> WorkflowRun:
    # Only now: every process that sets up Django would wait for it.
    from taskqueue.results.workflow_enqueueing import enqueue_graph

    return enqueue_graph(graph)
