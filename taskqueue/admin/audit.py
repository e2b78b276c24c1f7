"""The audit: who did what by hand, and why."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.display import moments


class AuditAdmin(ReadOnlyAdmin):
    """One act a row."""

    columns = ("at", "actor", "verb", "subject", "reason", "before")
    list_display = ("id", *moments("at"), "actor", "verb", "subject", "before", "reason")
    search_fields = ("subject",)
    search_help_text = _("The id of a task, or the whole name of what else it was done to.")
    fields = ("id", *moments("at"), "actor", "verb", "subject", "before", "reason", "detail")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return (queryset.filter(subject=search_term) if search_term else queryset), False
