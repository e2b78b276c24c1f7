"""The list of tasks, with its search."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.display import moments
from taskqueue.admin.filters import QueueFilter


class TaskList(ReadOnlyAdmin):
    """Newest first; what it searches by costs no look at every task."""

    columns = ("name", "queue_name", "status", "priority", "attempt", "run_after", "finished_at")
    list_display = (
        "name", "status", "queue_name", "priority", "attempt",
        *moments("run_after", "finished_at"),
    )  # fmt: skip
    list_filter = ("status", QueueFilter)
    lookups = ("status__exact", "queue_name")
    search_fields = ("id", "name", "unique_key")
    search_help_text = "An id, the whole name of a task, or a whole unique key."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Whole values only: a part of a name could be found by reading every task."""
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            return queryset.filter(id=UUID(term)), False
        except ValueError:
            return queryset.filter(Q(name=term) | Q(unique_key=term)), False
