"""The dashboard's page, and its refreshed fragment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Func, IntegerField, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.access.permissions import (
    CONTROL_QUEUES,
    EDIT_SCHEDULES,
    STOP,
    VIEW_ALERTS,
    VIEW_FIGURES,
)
from taskqueue.admin.charts import outcomes_chart, times_chart
from taskqueue.admin.dashboard.doctor import DoctorPage
from taskqueue.admin.dashboard.remedies import shown_notices
from taskqueue.admin.links import Links
from taskqueue.admin.reports import ReportAdmin, live_report, span_of, span_tabs
from taskqueue.admin.schedules.rule_words import rule_words
from taskqueue.admin.signals import OF_EVERY_TASK, SignalAdmin
from taskqueue.admin.workers import offered_to
from taskqueue.core.event_kinds import EventKind
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.display import number
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.queue_verbs import QUEUE_VERBS
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.schedules.reading import OVERDUE
from taskqueue.models import Schedule
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.counts import status_counts
from taskqueue.monitoring.durations import DAY, short_duration
from taskqueue.monitoring.notices import ERROR, Notice, Situation, notices, visible_to
from taskqueue.monitoring.notices.queues import nobody_takes
from taskqueue.monitoring.read_models.alert import firing_alerts
from taskqueue.monitoring.read_models.failure_group import failures
from taskqueue.monitoring.read_models.worker import LOST, ShownWorker, living
from taskqueue.monitoring.series import series
from taskqueue.monitoring.workflow_overview import workflow_overview


class DashboardAdmin(DoctorPage, SignalAdmin, ReportAdmin):
    """The dashboard, for users who may view tasks; each card also needs its own permission."""

    routes = (("stream/", "stream"), ("doctor/", "doctor"))

    page_template = "admin/taskqueue/dashboard/page.html"
    fragment_template = "admin/taskqueue/dashboard/fragment.html"

    class Media:
        css = {"all": ["taskqueue/dashboard.css"]}
        js = ["taskqueue/refresh.js", "taskqueue/dashboard.js"]

    def shown(self, request: HttpRequest) -> HttpResponse:
        templates = (self.page_template, self.fragment_template)
        context = parts(request, self.links, span_of(request))
        url = self.stream_url(request)
        return live_report(self, request, templates, _("Dashboard"), stream_url=url, **context)

    def events_of(self, object_id: UUID | None) -> EventFilter:
        return EventFilter.of([kind for kind in EventKind if kind not in OF_EVERY_TASK])


MOST_RUNNING, MOST_FAILURES, MOST_SCHEDULES, MOST_ALERTS = 20, 5, 6, 5
MOST_QUEUES, MOST_WORKERS = 100, 100
# The number of notices that are shown at once; others can be unfolded.
MOST_NOTICES = 10
# The dashboard is refreshed every few seconds; the failures page reads more.
FAILURES_LOOKED_AT = 1_000


@dataclass(frozen=True)
class State:
    """The overall state: working, idle, in need of attention, or without workers."""

    look: str
    word: str
    text: str


def parts(request: HttpRequest, links: Links, span: str) -> dict[str, Any]:
    """Return the context of the fragment."""
    situation = Situation()
    workers = situation.workers
    worker_ids = {worker.name: worker.id for worker in workers}
    running = situation.running[:MOST_RUNNING]
    newest = failures(limit=MOST_FAILURES, newest=FAILURES_LOOKED_AT)
    found = visible_to(request.user, notices(situation))
    shown = shown_notices(request, links, situation, found)
    may_control, may_stop = map(request.user.has_perm, (CONTROL_QUEUES, STOP))
    examined = situation.standing.examined
    context: dict[str, Any] = {
        "state": state_of(workers, found),
        "examined_ago": examined and short_duration((situation.now - examined.at).total_seconds()),
        "notices": shown[:MOST_NOTICES],
        "more_notices": shown[MOST_NOTICES:],
        # The page contains the buttons' form even before there is a first notice.
        "may_act": may_control or may_stop or request.user.has_perm(EDIT_SCHEDULES),
        "counts": status_counts(),
        "failures": newest.groups,
        "queues": situation.queues[:MOST_QUEUES],
        "queue_verbs": QUEUE_VERBS if may_control else None,
        "workers": [
            worker
            for worker in workers[:MOST_WORKERS]
            if worker.is_alive or (worker.state == LOST and worker.seen_seconds < DAY)
        ],
        "offered": offered_to(request.user),
        # A worker that is not listed has no page to link to.
        "running": [(task, worker_ids.get(task.worker_name)) for task in running],
        "stop": TASK_VERBS["stop"] if may_stop else None,
    }
    if request.user.has_perm(VIEW_FIGURES):
        context |= _charts(span)
    if request.user.has_perm("taskqueue.view_schedule"):
        context |= _schedules()
    if request.user.has_perm(VIEW_ALERTS):
        context["alerts"] = firing_alerts(limit=MOST_ALERTS)
    if request.user.has_perm("taskqueue.view_workflow"):
        context["workflows"] = workflow_overview()
    return context


def _charts(span: str) -> dict[str, Any]:
    """Return the charts of the attempts, with the choices of a period."""
    attempts = series(span)
    return {
        "spans": span_tabs(span),
        "outcomes": outcomes_chart(attempts),
        "times": times_chart(attempts),
    }


def _schedules() -> dict[str, Any]:
    """Return the next scheduled runs, and how many schedules are paused."""
    rows: QuerySet[Any] = Schedule.objects.using(database_alias())
    coming = rows.filter(next_at__isnull=False, is_enabled=True, removed_at=None, paused_at=None)
    paused_rows = rows.filter(paused_at__isnull=False)
    counted = paused_rows.annotate(number=Func("id", function="COUNT", output_field=IntegerField()))
    found = list(
        coming.annotate(now=DatabaseClock(), paused=Subquery(counted.order_by().values("number")))
        .only("name", "rule", "next_at")
        .order_by("next_at", "id")[:MOST_SCHEDULES]
    )
    paused = found[0].paused if found else paused_rows.count()
    words = ngettext("%(count)s schedule is paused", "%(count)s schedules are paused", paused)
    return {
        "schedules": [(row, rule_words(row), row.next_at < row.now - OVERDUE) for row in found],
        "paused": words % {"count": number(paused)} if paused else "",
    }


def state_of(workers: Sequence[ShownWorker], found: Sequence[Notice]) -> State:
    """Return the overall state. Idle workers count as available.

    An error among the notices needs attention, however busy the workers are.
    """
    alive = living(workers)
    if not alive:
        return State("error", _("No workers running"), _("Tasks wait until you start one."))
    busy, slots = sum(worker.busy for worker in alive), sum(worker.slots for worker in alive)
    many = ngettext("%(count)d worker running", "%(count)d workers running", len(alive))
    lives = many % {"count": len(alive)}
    if nobody_takes(workers):
        told = _("%(workers)s, all quiet or draining.") % {"workers": lives}
        return State("warning", _("No worker takes tasks"), told)
    told = _("%(workers)s, %(busy)d of %(slots)d slots busy.")
    text = told % {"workers": lives, "busy": busy, "slots": slots}
    if any(notice.level == ERROR for notice in found):
        return State("error", _("Needs attention"), text)
    return State("running", _("Working"), text) if busy else State("active", _("Idle"), text)
