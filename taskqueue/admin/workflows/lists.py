"""Workflows: the list with their progress, and how rows are found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from taskqueue.admin.base import LeanList, ReadOnlyAdmin
from taskqueue.admin.columns import cell
from taskqueue.admin.filters import WordedChoices
from taskqueue.core.workflow_states import StepStatus
from taskqueue.declarations.workflows.drawing import share_widths
from taskqueue.display import EMPTY, badge, breakable, last_digits, number, short_moment
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Workflow
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.history import seconds_between
from taskqueue.monitoring.read_models.workflow import ListedWorkflow, shown_workflows

# The most characters of a unique key in the list.
LONGEST_KEY = 40
DATED = "%Y-%m-%d %H:%M"
BAR_WIDTH = 128
PART = '<rect class="taskqueue-part taskqueue-part--{}" x="{}" y="0" width="{}" height="8"/>'


class WorkflowRows(LeanList):
    """A page of rows, each with its read model, by a few queries for all of them."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        for row, shown in zip(rows, shown_workflows(rows), strict=True):
            row.shown = shown
        self.result_list = rows


class WorkflowList(ReadOnlyAdmin):
    """The list. Child workflows are found only by their ids."""

    columns = (
        "name", "version", "status", "total_steps", "open_steps", "unique_key", "parent_step_id",
        "schedule_id", "nominal_at", "paused_at", "deadline_at", "stop_requested_at",
        "failed_step", "error", "trouble", "created_at", "moved_at", "finished_at",
    )  # fmt: skip
    list_display = ("named", "state", "progress", "failed", "created", "took")
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
        # Databases differ in how LIKE compares.
        begun = queryset.alias(beginning=Left("name", len(term)))
        return begun.filter(Q(beginning=term) | Q(unique_key=term)), False

    named = cell(_("workflow"), lambda row: name_and_key(row))
    state = cell(_("status"), lambda row: state_of(row))
    progress = cell(_("progress"), lambda row: progress_bar(row.shown))

    created = cell(_("created"), lambda row: short_moment(row.created_at, DATED, "when"))
    took = cell(_("took"), lambda row: time_taken(row))

    @admin.display(description=_("failed step"))
    def failed(self, row: Any) -> Any:
        if not row.failed_step:
            return EMPTY
        query = urlencode({"step": row.failed_step})
        address = f"{self.links.url('workflow_change', row.pk)}?{query}#taskqueue-members"
        return format_html('<a href="{}">{}</a>', address, row.failed_step)


def name_and_key(row: Workflow) -> SafeString:
    """Show the name, and what tells the row from others of that name."""
    key = Truncator(row.unique_key or "").chars(LONGEST_KEY) or last_digits(row.pk)
    name = breakable(row.name)
    return format_html('{} <span class="taskqueue-quiet taskqueue-light">{}</span>', name, key)


def state_of(row: Workflow | ListedWorkflow) -> SafeString:
    """Show the status, and whether it is paused."""
    if row.paused_at is None or row.finished_at is not None:
        return badge(row.status)
    return format_html("{} {}", badge(row.status), badge("paused"))


def time_taken(row: Workflow) -> str:
    """Return how long it took; empty if it has not ended."""
    if row.finished_at is None:
        return EMPTY
    return short_duration(seconds_between(row.created_at, row.finished_at))


def progress_bar(shown: ListedWorkflow) -> SafeString:
    """Show how many of the known members have ended, and how: a bar with parts, and words."""
    words = _("%(ended)s of %(members)s") % {
        "ended": number(shown.ended), "members": number(shown.members),
    }  # fmt: skip
    told = _("%(count)s failed") % {"count": number(shown.failed)} if shown.failed else ""
    shares = (
        (StepStatus.SUCCEEDED, shown.ended - shown.failed - shown.dropped),
        (StepStatus.FAILED, shown.failed),
        (StepStatus.CANCELLED, shown.dropped),
        (StepStatus.WAITING, max(shown.members - shown.ended, 0)),
    )
    return format_html(
        '<svg class="taskqueue-shares" viewBox="0 0 {} 8" preserveAspectRatio="none" role="img"'
        ' aria-label="{}">{}</svg> <span class="taskqueue-when">{}</span>{}',
        BAR_WIDTH,
        _("Progress: %(words)s") % {"words": ", ".join(filter(None, (words, told)))},
        format_html_join("", PART, _parts(shares)),
        words,
        format_html(' <span class="taskqueue-failures">{}</span>', told) if told else "",
    )


def _parts(shares: Iterable[tuple[StepStatus, int]]) -> Iterator[tuple[str, str, str]]:
    """Yield the status, the position and the width of each part, except for unfinished members."""
    left = 0.0
    for status, width in share_widths(shares, BAR_WIDTH):
        if status != StepStatus.WAITING:
            yield status.value, f"{left:.1f}", f"{width:.1f}"
        left += width
