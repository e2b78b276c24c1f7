"""Performance: wait times, run times and failure rates of tasks by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from taskqueue.access.permissions import VIEW_FIGURES, VIEW_TASKS
from taskqueue.admin.charts import outcomes_chart, times_chart
from taskqueue.admin.heat import by_doubling, heat_map, longest
from taskqueue.admin.links import finished_within, kept_tasks
from taskqueue.admin.reports import ReportAdmin, report, since_of, span_of, span_tabs
from taskqueue.admin.tasks.declared import declared_options, documented
from taskqueue.declarations.definition import registry
from taskqueue.display import spark
from taskqueue.engine.control.filters import is_storable
from taskqueue.monitoring.comparison import compared, compared_since, deploys
from taskqueue.monitoring.performance import NamePerformance
from taskqueue.monitoring.series import series
from taskqueue.monitoring.sparks import Sparks, sparks, sparks_since

# The columns by which the list can be sorted, with their headers.
COLUMNS: dict[str, Any] = {
    "name": gettext_lazy("Task"),
    "count": gettext_lazy("Attempts"),
    "failure_rate": gettext_lazy("Failed"),
    "failure_change": pgettext_lazy("a figure", "Change"),
    "run_p50": gettext_lazy("Run time p50"),
    "run_p50_change": pgettext_lazy("a figure", "Change"),
    "run_p95": gettext_lazy("Run time p95"),
    "run_p95_change": pgettext_lazy("a figure", "Change"),
    "wait_p95": gettext_lazy("Wait time p95"),
    "slowest_seconds": gettext_lazy("Slowest"),
}
# For columns with a change, the column that has changed.
CHANGED = {
    "failure_change": "failure_rate", "run_p50_change": "run_p50", "run_p95_change": "run_p95",
}  # fmt: skip
# With a moment, such as that of a deploy, the list shows what has become slower.
FIRST_SORT, FIRST_SORT_SINCE = "-count", "-run_p95_change"
MOST_DEPLOYS_SHOWN = 3


class PerformanceAdmin(ReportAdmin):
    """Read from rollups, so up to a minute old, and kept as long as these.

    For users who may view rollups; links to tasks also need the permission to view these.
    """

    list_template = "admin/taskqueue/performance/change_list.html"
    name_template = "admin/taskqueue/performance/name.html"

    class Media:
        css = {"all": ["taskqueue/charts.css", "taskqueue/pages.css"]}

    needed_to_view = (VIEW_FIGURES,)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(VIEW_FIGURES))

    def shown(self, request: HttpRequest) -> HttpResponse:
        span = span_of(request)
        name = request.GET.get("name", "")
        is_one = name != "" and is_storable(name)
        return self._name(request, span, name) if is_one else self._list(request, span)

    def _list(self, request: HttpRequest, span: str) -> HttpResponse:
        since, problem = since_of(request)
        sort = request.GET.get("sort", "")
        if sort.removeprefix("-") not in COLUMNS:
            sort = FIRST_SORT if since is None else FIRST_SORT_SINCE
        rows = in_order(compared(span) if since is None else compared_since(since), sort)
        typed = request.GET.get("since", "").strip()
        chosen = {"span": span} if since is None else {"since": typed}
        return report(
            self, request, self.list_template, _("Performance"),
            spans=[*span_tabs(span, since=since, sort=sort), *_deploy_tabs(typed)],
            since=since,
            typed=typed,
            problem=problem,
            heads=[_head(column, chosen, sort) for column in COLUMNS],
            chosen=chosen,
            sort_choices=sort_choices(sort),
            span=span,
            rows=rows,
            sparks=_sparks(sparks(span) if since is None else sparks_since(since)),
            kept=_kept(request, rows),
        )  # fmt: skip

    def _name(self, request: HttpRequest, span: str, name: str) -> HttpResponse:
        row = next((row for row in compared(span) if row.name == name), None)
        definition = registry.find(name)
        steps, marks = series(span, name=name), deploys()
        sees_tasks = request.user.has_perm(VIEW_TASKS)
        links = finished_within(self.links, name=name) if sees_tasks else None
        return report(
            self, request, self.name_template, name,
            spans=span_tabs(span, name=name),
            row=row,
            kept=_kept(request, [row] if row else []),
            outcomes=outcomes_chart(steps, marks=marks, links=links),
            times=times_chart(steps, marks=marks, links=links),
            heat=heat_map(steps, links=links),
            distribution=distribution(steps.whole.run_times),
            span=span,
            doc="" if definition is None else documented(definition),
            declared=[] if definition is None else declared_options(definition),
        )  # fmt: skip


def _kept(request: HttpRequest, rows: Iterable[NamePerformance]) -> set[UUID]:
    """Return the slowest tasks to which the page may link."""
    if not request.user.has_perm(VIEW_TASKS):
        return set()
    return kept_tasks(row.slowest_task_id for row in rows)


def _sparks(found: Sparks) -> dict[str, SafeString]:
    """Draw the attempts of each name over the period."""
    return {
        name: spark(
            counts,
            ngettext("%(count)d attempt finished", "%(count)d attempts finished", sum(counts))
            % {"count": sum(counts)},
        )
        for name, counts in found.items()
    }


def _deploy_tabs(typed: str) -> list[dict[str, Any]]:
    """Return links to the changes since the newest deploys."""
    return [
        {
            "title": _("Since %(version)s") % {"version": deploy.version},
            "url": f"?{urlencode({'since': deploy.at.isoformat()})}",
            "is_current": deploy.at.isoformat() == typed,
        }
        for deploy in deploys()[:MOST_DEPLOYS_SHOWN]
    ]


def distribution(run_times: Mapping[int, int]) -> list[dict[str, Any]]:
    """Return how many attempts took how long, a row for each doubling of the time."""
    counts = by_doubling(run_times)
    if not counts:
        return []
    return [
        {"longest": longest(doubling), "count": counts[doubling]}
        for doubling in range(min(counts), max(counts) + 1)
    ]


Row = TypeVar("Row", bound=NamePerformance)


def in_order(rows: list[Row], sort: str) -> list[Row]:
    """Sort by a column, descending after `-`; unknown values come last."""
    value = attrgetter(sort.removeprefix("-"))
    by_name = sorted(rows, key=attrgetter("name"))
    known = [row for row in by_name if value(row) is not None]
    unknown = [row for row in by_name if value(row) is None]
    return sorted(known, key=value, reverse=sort.startswith("-")) + unknown


def sort_choices(current: str) -> list[tuple[str, str, bool]]:
    """Return the values of a sort control, their texts, and whether each is the current one."""
    return [
        (sort, f"{_words(column)} {mark}", sort == current)
        for column in COLUMNS
        for sort, mark in _directions(column)
    ]


def _directions(column: str) -> list[tuple[str, str]]:
    """Return both sort orders of a column, the more useful one first, with their marks."""
    upwards, downwards = (column, "▲"), (f"-{column}", "▼")
    return [upwards, downwards] if column == "name" else [downwards, upwards]


def _words(column: str) -> str:
    if column not in CHANGED:
        return str(COLUMNS[column])
    return _("%(figure)s, its change") % {"figure": COLUMNS[CHANGED[column]]}


def _head(column: str, chosen: Mapping[str, str], sort: str) -> dict[str, Any]:
    """Return the header of a column, with the address that sorts by it.

    Its direction is the value of `aria-sort`; empty if the list is sorted by another column.
    """
    is_sorted, is_number = sort.removeprefix("-") == column, column != "name"
    downwards = is_number if not is_sorted else not sort.startswith("-")
    direction = ("descending" if sort.startswith("-") else "ascending") if is_sorted else ""
    return {
        "title": COLUMNS[column],
        "url": f"?{urlencode({**chosen, 'sort': '-' * downwards + column})}",
        "is_number": is_number,
        "direction": direction,
    }
