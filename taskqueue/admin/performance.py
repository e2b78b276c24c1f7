"""Performance: wait times, run times and failure rates of tasks by name.

Failures: failed and retrying tasks, in groups that can be acted on as a whole.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from taskqueue.admin.charts import outcomes_chart, times_chart
from taskqueue.admin.links import kept_tasks
from taskqueue.admin.reports import ReportAdmin, report, span_of, span_tabs
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.monitoring.performance import NamePerformance, performance
from taskqueue.monitoring.read_models.failure_group import failures, retrying
from taskqueue.monitoring.series import series

# The columns that the list can be sorted by, with their headers.
COLUMNS: dict[str, Any] = {
    "name": gettext_lazy("Task"),
    "count": gettext_lazy("Attempts"),
    "failure_rate": gettext_lazy("Failed"),
    "run_p50": gettext_lazy("Run time p50"),
    "run_p95": gettext_lazy("Run time p95"),
    "wait_p95": gettext_lazy("Wait time p95"),
    "slowest_seconds": gettext_lazy("Slowest"),
}
FIRST_SORT = "-count"


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
        return report(
            self, request, self.list_template, _("Performance"),
            spans=span_tabs(span, sort=sort),
            heads=[_head(column, span, sort) for column in COLUMNS],
            span=span,
            rows=rows,
            kept=kept_tasks(row.slowest_task_id for row in rows),
        )  # fmt: skip

    def _name(self, request: HttpRequest, span: str, name: str) -> HttpResponse:
        row = next((row for row in performance(span) if row.name == name), None)
        steps = series(span, name=name)
        return report(
            self, request, self.name_template, name,
            spans=span_tabs(span, name=name),
            row=row,
            kept=kept_tasks([row.slowest_task_id]) if row else (),
            outcomes=outcomes_chart(steps),
            times=times_chart(steps),
            span=span,
        )  # fmt: skip


def in_order(rows: list[NamePerformance], sort: str) -> list[NamePerformance]:
    """Sort by a column, descending after `-`; unknown values come last."""
    value = attrgetter(sort.removeprefix("-"))
    by_name = sorted(rows, key=attrgetter("name"))
    known = [row for row in by_name if value(row) is not None]
    unknown = [row for row in by_name if value(row) is None]
    return sorted(known, key=value, reverse=sort.startswith("-")) + unknown


def _head(column: str, span: str, sort: str) -> dict[str, Any]:
    """Return the header of a column, with the address that sorts by it.

    Its direction is the value of `aria-sort`; empty if the list is sorted by another column.
    """
    is_sorted, is_number = sort.removeprefix("-") == column, column != "name"
    downwards = is_number if not is_sorted else not sort.startswith("-")
    direction = ("descending" if sort.startswith("-") else "ascending") if is_sorted else ""
    return {
        "title": COLUMNS[column],
        "url": f"?{urlencode({'span': span, 'sort': '-' * downwards + column})}",
        "is_number": is_number,
        "direction": direction,
    }


MOST_GROUPS = 100
# The verbs that a whole group is offered, with the titles of their links.
OF_FAILED = {"retry": gettext_lazy("Retry all"), "delete": gettext_lazy("Delete all")}
OF_RETRYING = {"run_now": gettext_lazy("Run all now"), "cancel": gettext_lazy("Cancel all")}


class FailureAdmin(ReportAdmin):
    """Two tables of groups, with links to their tasks and to bulk actions."""

    template = "admin/taskqueue/failure/change_list.html"

    class Media:
        css = {"all": ["taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        return report(
            self,
            request,
            self.template,
            _("Failures"),
            failed=failures(limit=MOST_GROUPS),
            failed_acts=_offered(OF_FAILED, request.user),
            retrying=retrying(request.user, limit=MOST_GROUPS),
            retrying_acts=_offered(OF_RETRYING, request.user),
        )


def _offered(titles: dict[str, Any], user: Any) -> list[tuple[TaskVerb, Any]]:
    """Return those of the verbs that the user may do, with their titles."""
    return [(TASK_VERBS[name], titles[name]) for name in titles if TASK_VERBS[name].is_for(user)]
