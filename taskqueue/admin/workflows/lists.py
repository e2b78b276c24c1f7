"""Workflows: the list with how far each is, and how rows are found."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import LeanList, ReadOnlyAdmin
from taskqueue.admin.columns import cell
from taskqueue.admin.filters import WordedChoices
from taskqueue.display import EMPTY, badge, breakable, number
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Workflow
from taskqueue.monitoring.read_models.workflow import ListedWorkflow, shown_workflows


class WorkflowRows(LeanList):
    """A page of rows, each with its read model: a few queries for all of them."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        for row, shown in zip(rows, shown_workflows(rows), strict=True):
            row.shown = shown
        self.result_list = rows


class WorkflowList(ReadOnlyAdmin):
    """The list. Workflows that others run as steps are found by their ids alone."""

    columns = (
        "name", "version", "status", "total_steps", "open_steps", "unique_key", "parent_step_id",
        "schedule_id", "nominal_at", "paused_at", "deadline_at", "stop_requested_at",
        "failed_step", "error", "trouble", "created_at", "moved_at", "finished_at",
    )  # fmt: skip
    list_display = ("named", "state", "progress", "failed", "created_at", "finished_at")
    list_display_links = ("named",)
    list_filter = (("status", WordedChoices),)
    lookups = ("status__exact",)
    search_fields = ("name",)
    search_help_text = _("Search by id, by the start of a name, or by the full unique key.")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LeanList]:
        return WorkflowRows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        try:
            return queryset.filter(id=UUID(term)), False
        except ValueError:
            queryset = queryset.filter(parent_step_id=None)
        if not term:
            return queryset, False
        if not is_storable(term):
            return queryset.none(), False
        # Databases differ in what LIKE ignores.
        begun = queryset.alias(beginning=Left("name", len(term)))
        return begun.filter(Q(beginning=term) | Q(unique_key=term)), False

    named = cell(_("workflow"), breakable, "name")
    state = cell(_("status"), lambda row: state_of(row))
    progress = cell(_("progress"), lambda row: progress_bar(row.shown))

    @admin.display(description=_("failed step"))
    def failed(self, row: Any) -> Any:
        return row.failed_step or EMPTY


def state_of(row: Workflow | ListedWorkflow) -> SafeString:
    """Show the status, and a pause beside it."""
    if row.paused_at is None or row.finished_at is not None:
        return badge(row.status)
    return format_html("{} {}", badge(row.status), badge("paused"))


def progress_bar(shown: ListedWorkflow) -> SafeString:
    """Show how many of the known members have ended."""
    words = _("%(ended)s of %(members)s") % {
        "ended": number(shown.ended), "members": number(shown.members),
    }  # fmt: skip
    return format_html(
        '<progress class="taskqueue-progress" max="100" value="{0}" aria-label="{1}">{0} %'
        "</progress> <span>{2}</span>",
        shown.percent,
        _("Progress"),
        words,
    )
