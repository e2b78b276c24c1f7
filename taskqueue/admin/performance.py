"""Performance: wait times, run times and failure rates of tasks by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.charts import outcomes_chart, times_chart
from taskqueue.admin.links import Links, kept_tasks
from taskqueue.admin.reports import ReportAdmin, report, span_of, span_tabs
from taskqueue.display import EMPTY, short_duration
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Task
from taskqueue.monitoring.performance import NamePerformance, performance
from taskqueue.monitoring.searching import search_text
from taskqueue.monitoring.series import series

COLUMNS: dict[str, Any] = {
    "name": gettext_lazy("Task"),
    "count": gettext_lazy("Attempts"),
    "failure_rate": gettext_lazy("Failed"),
    "run_p50": gettext_lazy("Run time p50"),
    "run_p95": gettext_lazy("Run time p95"),
    "wait_p95": gettext_lazy("Wait time p95"),
    "slowest_seconds": gettext_lazy("Slowest"),
}
"""The columns that the list can be sorted by, with their headers."""
FIRST_SORT = "-count"


@dataclass(frozen=True)
class Head:
    """The header of a column, and the address that sorts by it."""

    title: Any
    url: str
    is_number: bool
    direction: str
    """The value of `aria-sort`; empty if the list is sorted by another column."""


class PerformanceAdmin(ReportAdmin):
    """Read from rollups: up to a minute old, and kept as long as these."""

    list_template = "admin/taskqueue/performance/change_list.html"
    name_template = "admin/taskqueue/performance/name.html"

    class Media:
        css = {"all": ["taskqueue/charts.css", "taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        span = span_of(request)
        name = request.GET.get("name", "")
        is_one = name != "" and is_storable(name)
        return self._name(request, span, name) if is_one else self._list(request, span)

    def _list(self, request: HttpRequest, span: str) -> HttpResponse:
        sort = request.GET.get("sort", "")
        if sort.removeprefix("-") not in COLUMNS:
            sort = FIRST_SORT
        rows = in_order(performance(span), sort)
        kept = kept_tasks(row.slowest_task_id for row in rows)
        return report(
            self, request, self.list_template, _("Performance"),
            spans=span_tabs(span, sort=sort),
            heads=[_head(column, span, sort) for column in COLUMNS],
            lines=[_line(row, span, kept, self.links) for row in rows],
        )  # fmt: skip

    def _name(self, request: HttpRequest, span: str, name: str) -> HttpResponse:
        rows = [row for row in performance(span) if row.name == name]
        kept = kept_tasks(row.slowest_task_id for row in rows)
        steps = series(span, name=name)
        return report(
            self, request, self.name_template, name,
            spans=span_tabs(span, name=name),
            line=_line(rows[0], span, kept, self.links) if rows else None,
            outcomes=outcomes_chart(steps),
            times=times_chart(steps),
            list_url=f"?{urlencode({'span': span})}",
            tasks_url=self.links.list_url(Task, q=search_text(name=name)),
            failed_url=self.links.list_url(Task, q=search_text(status="failed", name=name)),
        )  # fmt: skip


def in_order(rows: list[NamePerformance], sort: str) -> list[NamePerformance]:
    """Sort by a column, descending after `-`; unknown values come last."""
    column, is_down = sort.removeprefix("-"), sort.startswith("-")

    def known(row: NamePerformance) -> bool:
        return getattr(row, column) is not None

    by_name = sorted(rows, key=lambda row: row.name)
    sortable = sorted(filter(known, by_name), key=lambda row: getattr(row, column), reverse=is_down)
    return [*sortable, *(row for row in by_name if not known(row))]


def _head(column: str, span: str, sort: str) -> Head:
    is_sorted = sort.removeprefix("-") == column
    is_number = column != "name"
    downwards = is_number if not is_sorted else not sort.startswith("-")
    url = f"?{urlencode({'span': span, 'sort': '-' * downwards + column})}"
    direction = ("descending" if sort.startswith("-") else "ascending") if is_sorted else ""
    return Head(COLUMNS[column], url, is_number, direction)


def _line(row: NamePerformance, span: str, kept: set[Any], links: Links) -> dict[str, Any]:
    return {
        "name": row.name,
        "url": f"?{urlencode({'span': span, 'name': row.name})}",
        "count": number_format(row.count, force_grouping=True),
        "failed": number_format(row.failed, force_grouping=True),
        "failure_rate": share(row.failure_rate),
        "is_failing": row.failed > 0,
        "run_p50": short_duration(row.run_p50) or EMPTY,
        "run_p95": short_duration(row.run_p95) or EMPTY,
        "wait_p50": short_duration(row.wait_p50) or EMPTY,
        "wait_p95": short_duration(row.wait_p95) or EMPTY,
        "slowest": short_duration(row.slowest_seconds) if row.slowest_task_id else EMPTY,
        "slowest_url": links.row_url(Task, row.slowest_task_id)
        if row.slowest_task_id in kept
        else "",
    }


def share(rate: float) -> str:
    """Write a share of one as per cent; a share above zero is never written as zero."""
    percent = rate * 100
    shown = 0.1 if 0 < percent < 0.1 else math.floor(percent * 10 + 0.5) / 10
    return _("%(number)s %%") % {"number": f"{shown:g}"}
