"""Queues: the lanes that workers have seen tasks on."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from taskqueue.admin.display import link_to_list, moments
from taskqueue.admin.queues.acts import QueueActs
from taskqueue.models import Queue, Task
from taskqueue.models.clock import DatabaseClock


class QueueAdmin(QueueActs):
    """A queue has a row once a worker has seen it."""

    columns = ("name", "created_at", "paused_at", "paused_until", "paused_by")
    list_display = (
        "name", "is_paused", *moments("paused_until"), "paused_by", "tasks",
        *moments("created_at"),
    )  # fmt: skip
    ordering: ClassVar[tuple[str, ...]] = ("name",)
    search_fields = ("name",)
    search_help_text = "The whole name of a queue."
    fields = (
        "name", "is_paused", *moments("paused_at", "paused_until"), "paused_by", "pause_reason",
        "tasks", *moments("created_at"),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(now=DatabaseClock())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return (queryset.filter(name=search_term) if search_term else queryset), False

    @admin.display(description="paused", boolean=True)
    def is_paused(self, queue: Any) -> bool:
        return bool(queue.is_paused_at(queue.now))

    @admin.display(description="tasks")
    def tasks(self, queue: Queue) -> SafeString:
        return link_to_list(Task, "tasks", queue_name=queue.name)
