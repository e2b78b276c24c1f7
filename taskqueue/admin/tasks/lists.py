"""The list of tasks: its search, its tabs by status, its pages and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.templatetags.admin_list import result_headers, results
from django.contrib.admin.utils import label_for_field
from django.contrib.admin.views.main import ChangeList
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from taskqueue.admin.base import LeanList
from taskqueue.admin.operations.undoing import may_act_on_many, undoable_by
from taskqueue.admin.tasks.columns import TaskColumns
from taskqueue.admin.tasks.export import MOST_ROWS, TaskExport
from taskqueue.admin.tasks.narrowing import (
    address,
    matching,
    queue_links,
    searched,
    status_tabs,
    with_old_filters,
)
from taskqueue.admin.tasks.previews import note_arguments, short_arguments
from taskqueue.admin.tasks.searches import TaskSearches
from taskqueue.admin.tasks.sorting import sort_choices, sortable, sorting_of
from taskqueue.declarations.payload import storable
from taskqueue.engine.connections import database_alias
from taskqueue.models import Lease, Task
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.searching.finding import Page, find
from taskqueue.monitoring.searching.qualifiers import is_id
from taskqueue.monitoring.searching.search import Search
from taskqueue.monitoring.searching.search_tokens import SearchError
from taskqueue.monitoring.searching.sorting import Sorting, find_sorted
from taskqueue.monitoring.why.briefly import why_they_wait

TOGGLE = 'id="action-toggle"'


class TaskPages(LeanList):
    """A page of the tasks found by the search, in the form of a Django list."""

    # None if the text is not a valid search; then nothing is shown.
    search: Search | None = None
    search_error = ""
    # None for the usual order.
    sorting: Sorting | None = None
    sort = ""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        """Return all matching tasks; the page is not read from this."""
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
        model_admin: Any = self.model_admin
        page, given = Page(tasks=()), set[str]()
        self.sorting = sorting_of(request.GET.get("sort", ""))
        self.sort = "" if self.sorting is None else str(self.sorting)
        if self.search is not None:
            place: dict[str, Any] = {
                "tasks": self.root_queryset.only(*model_admin.columns).annotate(
                    now=DatabaseClock(), **short_arguments()
                ),
                "before": request.GET.get("before", ""),
                "after": request.GET.get("after", ""),
                "limit": self.list_per_page,
            }
            which = self.search.which
            page = (
                find(which, **place)
                if self.sorting is None
                else find_sorted(which, self.sorting, **place)
            )
            given = set(which.given)
        self.page = page
        sort = self.sort
        self.first_url = address(self.text, sort=sort)
        self.newer_url = address(self.text, sort=sort, after=page.newer) if page.newer else ""
        self.older_url = address(self.text, sort=sort, before=page.older) if page.older else ""
        self.counts = status_counts() if given <= {"statuses", "everything"} else None
        self.matching = matching(page, self.search, self.counts)
        self.result_list = [*page.tasks, *page.holders]
        _note_last_runs(self.result_list)
        _note_reasons(self.result_list)
        note_arguments(self.result_list, request.user)
        self.result_count: int = self.matching
        self.full_result_count, self.show_full_result_count = None, False
        self.show_admin_actions = True
        self.can_show_all, self.multi_page = False, not page.is_all
        self.paginator = model_admin.get_paginator(
            request, self.root_queryset.none(), self.list_per_page
        )

    @property
    def text(self) -> str:
        """The search in its normal form; as typed if it is not valid."""
        return self.query if self.search is None else self.search.text

    @property
    def sort_choices(self) -> list[tuple[str, str, bool]]:
        """The choices of the sort control for lists without headings."""
        return sort_choices(self.sorting)

    def headers(self) -> list[dict[str, Any]]:
        """Return the column headers; some themes find the select-all box by a class."""
        headers: list[dict[str, Any]] = list(result_headers(self))
        for header, column in zip(headers, self.list_display, strict=True):
            name = column if isinstance(column, str) else column.__name__
            sortable(header, name, self.text, self.sorting)
            if isinstance(header["text"], SafeString):
                text = header["text"].replace(TOGGLE, f'{TOGGLE} class="action-toggle"')
                header["text"] = SafeString(text)
        return headers

    def rows(self) -> list[SafeString]:
        """Return rows whose cells name their column, because narrow screens show no headers."""
        labels = [
            "" if name == "action_checkbox"
            else capfirst(str(label_for_field(name, self.model, self.model_admin)))
            for name in self.list_display
        ]  # fmt: skip
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


def _note_reasons(tasks: Sequence[Any]) -> None:
    """Give each task the reason why it waits, as far as a few statements per page can tell."""
    found = why_they_wait(tasks, tasks[0].now) if tasks else {}
    for task in tasks:
        task.waits_for = found.get(task.pk)


def _labelled(cell: SafeString, label: str) -> SafeString:
    """Add the column's name to a cell."""
    if not label or not cell.startswith("<td"):
        return cell
    return format_html('<td data-label="{}"', label) + SafeString(cell.removeprefix("<td"))


class TaskList(TaskColumns, TaskExport, TaskSearches):
    """The list with its search; `?status=failed` redirects to the search."""

    change_list_template = "admin/taskqueue/task/change_list.html"
    columns = (
        "name", "queue_name", "status", "priority", "attempt", "enqueued_at", "run_after",
        "started_at", "finished_at", "error_class", "worker_names", "parked_at",
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
        js = ["taskqueue/suggest.js", "taskqueue/undo.js"]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return TaskPages

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        moved = with_old_filters(request, self.links) if request.method == "GET" else None
        if moved is None and request.method == "GET":
            moved = self._page_of_typed_id(request.GET.get("q", "").strip())
        if moved is not None:
            return HttpResponseRedirect(moved)
        return self._with_search(request, super().changelist_view(request, extra_context))

    def _page_of_typed_id(self, text: str) -> str | None:
        """Return the address of the task whose id was typed, if it exists."""
        if not is_id(text):
            return None
        found = Task.objects.using(database_alias()).filter(pk=UUID(text)).only("pk").first()
        return None if found is None else self.links.url("task_change", found.pk)

    def _with_search(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        context = getattr(response, "context_data", None) or {}
        if "cl" in context:
            pages = context["cl"]
            context |= {
                "search": pages.text,
                "matching": pages.matching,
                "tabs": status_tabs(pages.search, pages.counts, sort=pages.sort),
                "queues": queue_links(pages.search, sort=pages.sort),
                "undoable": undoable_by(request.user) if may_act_on_many(request.user) else [],
                "here": request.get_full_path(),
                **self.saved_searches(request, pages.text),
                "most_exported": Count(MOST_ROWS),
                "title": capfirst(self.opts.verbose_name_plural),
            }
        return response
