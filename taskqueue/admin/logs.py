"""Log lines of tasks."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import OfTaskAdmin
from taskqueue.admin.columns import cell
from taskqueue.display import preformatted
from taskqueue.monitoring.read_models.attempt import level_name

LONGEST_BEGINNING = 200


class TaskLogAdmin(OfTaskAdmin):
    """One captured line a row; the list shows the start of each."""

    columns = ("task_id", "attempt", "logged_at", "level", "logger")
    list_display = ("id", "logged_at", "level_name", "task_link", "attempt", "beginning")
    lookups = ("task__id__exact",)
    fields = (
        "id", "task_link", "attempt", "logged_at", "level_name", "logger",
        "shown_message",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Any:
        lines = super().get_queryset(request)
        return lines.annotate(start=Left("message", LONGEST_BEGINNING + 1))

    level_name = cell(_("level"), level_name, "level")
    beginning = cell(_("message"), lambda start: Truncator(start).chars(LONGEST_BEGINNING), "start")
    shown_message = cell(_("message"), preformatted, "message")
