"""The dashboard's page, and its refreshed fragment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.access.permissions import CONTROL_QUEUES, STOP
from taskqueue.admin.charts import outcomes_chart, times_chart
from taskqueue.admin.dashboard.notices import sentences, visible
from taskqueue.admin.dashboard.rows import (
    failure_rows,
    queue_rows,
    running_rows,
    schedules_shown,
    worker_rows,
)
from taskqueue.admin.links import Links
from taskqueue.admin.reports import ReportAdmin, live_report, span_of, span_tabs
from taskqueue.display import WORDS, badge
from taskqueue.models import Lease, Queue, Task, Worker
from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.notices import ERROR, Notice, notices
from taskqueue.monitoring.read_models.failure_group import failures
from taskqueue.monitoring.read_models.queue import read_queues
from taskqueue.monitoring.read_models.running_task import running_now
from taskqueue.monitoring.read_models.worker import ShownWorker, living, read_workers
from taskqueue.monitoring.series import series


class DashboardAdmin(ReportAdmin):
    """The dashboard, for users who may view tasks; each card needs its own permission besides."""

    page_template = "admin/taskqueue/dashboard/page.html"
    fragment_template = "admin/taskqueue/dashboard/fragment.html"

    class Media:
        css = {"all": ["taskqueue/dashboard.css"]}
        js = ["taskqueue/refresh.js", "taskqueue/dashboard.js"]

    def shown(self, request: HttpRequest) -> HttpResponse:
        templates = (self.page_template, self.fragment_template)
        context = parts(request, self.links, span_of(request))
        return live_report(self, request, templates, _("Dashboard"), **context)


MOST_RUNNING, MOST_FAILURES = 20, 5
FAILURES_LOOKED_AT = 1_000
"""The dashboard is refreshed every few seconds; the failures page looks at more."""


@dataclass(frozen=True)
class State:
    """The overall state: working, idle, in need of attention, or without workers."""

    look: str
    word: str
    text: str


def parts(request: HttpRequest, links: Links, span: str) -> dict[str, Any]:
    """Return the context of the fragment."""
    workers = read_workers()
    queues = read_queues(workers=workers)
    running = running_now(limit=MOST_RUNNING)
    figures = series(span)
    newest = failures(limit=MOST_FAILURES, newest=FAILURES_LOOKED_AT)
    found = visible(request, notices(queues=queues, workers=workers, running=running))
    shown: dict[str, Any] = {
        "state": state_of(workers, found),
        "notices": sentences(found, links),
        "counts": count_links(status_counts(), links),
        "spans": span_tabs(span),
        "outcomes": outcomes_chart(figures),
        "times": times_chart(figures),
        "failures": failure_rows(newest.groups, links),
        "failures_url": links.url_if_any("failure_changelist"),
        "may_stop": request.user.has_perm(STOP),
        "may_control": request.user.has_perm(CONTROL_QUEUES),
    }
    if may_view(request, "queue"):
        shown |= {"queues": queue_rows(request, links, queues), "queues_url": links.list_url(Queue)}
    if may_view(request, "worker"):
        shown |= {
            "workers": worker_rows(request, links, workers),
            "workers_url": links.list_url(Worker),
        }
    if may_view(request, "lease"):
        shown["running"] = running_rows(request, links, running, workers)
        shown["running_url"] = links.list_url(Lease, status__exact="running")
    if may_view(request, "schedule"):
        shown |= schedules_shown(links)
    return shown


def may_view(request: HttpRequest, model_name: str) -> bool:
    """Whether the user may view the model."""
    return bool(request.user.has_perm(f"taskqueue.view_{model_name}"))


def state_of(workers: Sequence[ShownWorker], found: Sequence[Notice]) -> State:
    """Return the overall state; idle workers are not missing workers.

    An error among the notices needs attention, however busy the workers are.
    """
    alive = living(workers)
    if not alive:
        return State("error", _("No workers running"), _("Tasks wait until you start one."))
    taking = [worker for worker in alive if worker.takes_tasks]
    busy, slots = sum(worker.busy for worker in alive), sum(worker.slots for worker in alive)
    many = ngettext("%(count)d worker running", "%(count)d workers running", len(alive))
    lives = many % {"count": len(alive)}
    if not taking:
        told = _("%(workers)s, all quiet or draining.") % {"workers": lives}
        return State("warning", _("No worker takes tasks"), told)
    told = _("%(workers)s, %(busy)d of %(slots)d slots busy.")
    text = told % {"workers": lives, "busy": busy, "slots": slots}
    if any(notice.level == ERROR for notice in found):
        return State("error", _("Needs attention"), text)
    return State("running", _("Working"), text) if busy else State("active", _("Idle"), text)


def count_links(counts: dict[str, Count], links: Links) -> list[dict[str, Any]]:
    """Return the number of tasks of each status, with links to their lists."""
    return [
        {
            "status": status,
            "badge": badge(status),
            "word": WORDS.get(status, status),
            "count": count,
            "is_none": not count.value,
            "url": links.list_url(Task, status=status),
        }
        for status, count in counts.items()
    ]
