"""Log lines of tasks."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.columns import cell
from taskqueue.admin.filters import by_task
from taskqueue.display import preformatted
from taskqueue.models import Task, TaskLog
from taskqueue.monitoring.read_models.attempt import level_name

LONGEST_BEGINNING = 200


class TaskLogAdmin(ReadOnlyAdmin):
    """One captured line a row; the list shows the start of each."""

    columns = ("task_id", "attempt", "logged_at", "level", "logger")
    list_display = ("id", "logged_at", "level_name", "task_link", "attempt", "beginning")
    lookups = ("task__id__exact",)
    search_fields = ("task",)
    search_help_text = _("Search by task id.")
    fields = (
        "id", "task_link", "attempt", "logged_at", "level_name", "logger",
        "shown_message",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Any:
        lines = super().get_queryset(request)
        return lines.annotate(start=Left("message", LONGEST_BEGINNING + 1))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return by_task(queryset, search_term), False

    @admin.display(description=_("task"))
    def task_link(self, line: TaskLog) -> SafeString:
        return self.links.to_row(Task, line.task_id, line.task_id)

    level_name = cell(_("level"), level_name, "level")

    @admin.display(description=_("message"))
    def beginning(self, line: Any) -> str:
        beginning: str = line.start[:LONGEST_BEGINNING]
        return beginning + "…" * (len(line.start) > LONGEST_BEGINNING)

    shown_message = cell(_("message"), preformatted, "message")
