"""The list of tasks: one search, tabs by status, pages by keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.templatetags.admin_list import result_headers, results
from django.contrib.admin.utils import label_for_field
from django.contrib.admin.views.main import ChangeList
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from taskqueue.admin.base import LeanList
from taskqueue.admin.tasks.columns import TaskColumns
from taskqueue.admin.tasks.export import MOST_ROWS, TaskExport
from taskqueue.admin.tasks.narrowing import (
    Matching,
    address,
    matching,
    queue_links,
    searched,
    status_tabs,
    with_old_filters,
)
from taskqueue.declarations.payload import storable
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease
from taskqueue.models.clock import DatabaseClock
from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.searching import Page, Search, SearchError, find


class TaskPages(LeanList):
    """A page of the tasks that the search finds, as Django's lists show rows."""

    search: Search | None = None
    """None if the text is not a valid search; then nothing is shown."""
    search_error = ""
    page: Page
    matching: Matching

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """Return all tasks that match; the page is not read from this."""
        if any("__" in name for name in request.GET):
            raise DisallowedModelAdminLookup("Tasks are searched by ?q= alone.")
        text = request.GET.get("q", "")
        self.query = storable(text, limit=len(text))
        self.filter_specs, self.has_filters, self.has_active_filters = [], False, bool(text.strip())
        try:
            self.search = searched(request, text)
        except SearchError as error:
            self.search_error = str(error)
            return self.root_queryset.none()
        return self.search.which.among(self.root_queryset)

    def get_results(self, request: HttpRequest) -> None:
        page = Page(tasks=())
        which = None if self.search is None else self.search.which
        if which is not None:
            model_admin: Any = self.model_admin
            rows = self.root_queryset.only(*model_admin.columns).annotate(now=DatabaseClock())
            page = find(
                which,
                tasks=rows,
                before=request.GET.get("before", ""),
                after=request.GET.get("after", ""),
                limit=self.list_per_page,
            )
        given = set() if which is None else which.given.keys()
        self.counts = status_counts() if given <= {"statuses", "everything"} else None
        self.page = page
        self.result_list = [*page.tasks, *page.holders]
        _note_last_runs(self.result_list)
        self.matching = matching(page, which, self.counts)
        self.result_count: int = self.matching
        self.full_result_count, self.show_full_result_count = None, False
        self.show_admin_actions = True
        self.can_show_all, self.multi_page = False, not page.is_all
        self.paginator = self.model_admin.get_paginator(
            request, self.root_queryset.none(), self.list_per_page
        )

    @property
    def text(self) -> str:
        """The search in its normal form; as typed if it is not valid."""
        return self.query if self.search is None else self.search.text

    @property
    def newer_url(self) -> str:
        """The address of the previous page; empty on the first."""
        return address(self.text, after=self.page.newer) if self.page.newer else ""

    @property
    def older_url(self) -> str:
        """The address of the next page; empty on the last."""
        return address(self.text, before=self.page.older) if self.page.older else ""

    @property
    def first_url(self) -> str:
        """The address of the first page."""
        return address(self.text)

    @property
    def is_first(self) -> bool:
        """Whether this is the first page."""
        return not self.page.newer

    def headers(self) -> list[dict[str, Any]]:
        """Return the column headers; some themes find the box that selects all by a class."""
        return [{**header, "text": _with_class(header["text"])} for header in result_headers(self)]

    def rows(self) -> list[SafeString]:
        """Return rows whose cells name their column: narrow screens show no headers."""
        labels = [
            "" if name == "action_checkbox" else _label(name, self.model, self.model_admin)
            for name in self.list_display
        ]
        return [SafeString("".join(map(_labelled, row, labels))) for row in results(self)]


def _note_last_runs(tasks: Sequence[Any]) -> None:
    """Give each task the start and the end of its last attempt, in one statement."""
    rows = Lease.objects.using(database_alias()).filter(
        task_id__in=[task.pk for task in tasks], attempt=F("task__attempt")
    )
    found = {
        task_id: run for task_id, *run in rows.values_list("task_id", "started_at", "finished_at")
    }
    for task in tasks:
        task.last_run = found.get(task.pk, (None, None))


def _with_class(text: Any) -> Any:
    """Give the box that selects all its class; return other headers unchanged."""
    toggle = 'id="action-toggle"'
    if isinstance(text, SafeString) and toggle in text:
        return SafeString(text.replace(toggle, f'{toggle} class="action-toggle"'))
    return text


class TaskList(TaskColumns, TaskExport):
    """The list with its search; `?status=failed` redirects to the search."""

    change_list_template = "admin/taskqueue/task/change_list.html"
    columns = (
        "name", "queue_name", "status", "priority", "attempt", "enqueued_at", "run_after",
        "started_at", "finished_at", "error_class",
    )  # fmt: skip
    list_display: Any = (
        "shown_name", "short_id", "shown_status", "shown_queue", "priority", "shown_attempt",
        "shown_enqueued", "shown_moment", "shown_duration", "shown_error",
    )  # fmt: skip
    list_display_links: Any = ("shown_name",)
    search_fields = ("id", "name", "unique_key")
    actions_selection_counter = True

    class Media:
        css = {"all": ["taskqueue/tasks.css"]}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return TaskPages

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        moved = with_old_filters(request, self.links) if request.method == "GET" else None
        if moved is not None:
            return HttpResponseRedirect(moved)
        response = super().changelist_view(request, extra_context)
        context = getattr(response, "context_data", None)
        if isinstance(response, TemplateResponse) and context and "cl" in context:
            context.update(self._shown(context["cl"]))
        return response

    def _shown(self, pages: TaskPages) -> dict[str, Any]:
        return {
            "search": pages.text,
            "matching": pages.matching,
            "tabs": status_tabs(pages.search, pages.counts),
            "queues": queue_links(pages.search),
            "most_exported": Count(MOST_ROWS),
            "title": capfirst(self.opts.verbose_name_plural),
        }


def _label(name: Any, model: Any, model_admin: Any) -> str:
    return str(label_for_field(name, model, model_admin))


def _labelled(cell: SafeString, label: str) -> SafeString:
    """Add the column's name to a cell."""
    if not label or not cell.startswith("<td"):
        return cell
    text = label[:1].upper() + label[1:]
    return format_html('<td data-label="{}"', text) + SafeString(cell.removeprefix("<td"))
