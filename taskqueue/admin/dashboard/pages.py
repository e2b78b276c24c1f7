"""The dashboard's page, its refreshed fragment, and its notices in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Func, IntegerField, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.access.permissions import CONTROL_QUEUES, EDIT_SCHEDULES, STOP, VIEW_ALERTS
from taskqueue.admin.charts import outcomes_chart, times_chart
from taskqueue.admin.links import Links
from taskqueue.admin.reports import ReportAdmin, live_report, span_of, span_tabs
from taskqueue.admin.schedules.rule_words import rule_words
from taskqueue.admin.workers import offered_to
from taskqueue.display import DAY, number, short_duration
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.schedules.reading import OVERDUE
from taskqueue.engine.verbs import QUEUE_VERBS
from taskqueue.models import Schedule, Task, Worker
from taskqueue.models.parts import DatabaseClock
from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.notices import ERROR, Notice, nobody_takes, notices
from taskqueue.monitoring.read_models.alert import firing_alerts
from taskqueue.monitoring.read_models.attempt import running_now
from taskqueue.monitoring.read_models.failure_group import failures
from taskqueue.monitoring.read_models.queue import read_queues
from taskqueue.monitoring.read_models.worker import LOST, ShownWorker, living, read_workers
from taskqueue.monitoring.searching.search_tokens import search_text
from taskqueue.monitoring.series import series
from taskqueue.monitoring.workflow_overview import workflow_overview


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


MOST_RUNNING, MOST_FAILURES, MOST_SCHEDULES, MOST_ALERTS = 20, 5, 6, 5
# The dashboard is refreshed every few seconds; the failures page looks at more.
FAILURES_LOOKED_AT = 1_000


@dataclass(frozen=True)
class State:
    """The overall state: working, idle, in need of attention, or without workers."""

    look: str
    word: str
    text: str


def parts(request: HttpRequest, links: Links, span: str) -> dict[str, Any]:
    """Return the context of the fragment."""
    workers = read_workers()
    worker_ids = {worker.name: worker.id for worker in workers}
    queues = read_queues(workers=workers)
    running = running_now(limit=MOST_RUNNING)
    figures = series(span)
    newest = failures(limit=MOST_FAILURES, newest=FAILURES_LOOKED_AT)
    found = visible(request, notices(queues=queues, workers=workers, running=running))
    may_control, may_stop = map(request.user.has_perm, (CONTROL_QUEUES, STOP))
    context: dict[str, Any] = {
        "state": state_of(workers, found),
        "notices": [(notice, sentence(notice, links)) for notice in found],
        "counts": status_counts(),
        "spans": span_tabs(span),
        "outcomes": outcomes_chart(figures),
        "times": times_chart(figures),
        "failures": newest.groups,
        "queues": queues,
        "queue_verbs": QUEUE_VERBS if may_control else None,
        "workers": [
            worker
            for worker in workers
            if worker.is_alive or (worker.state == LOST and worker.seen_seconds < DAY)
        ],
        "offered": offered_to(request.user),
        # A worker that is not listed has no page to link to.
        "running": [(task, worker_ids.get(task.worker_name)) for task in running],
        "stop": TASK_VERBS["stop"] if may_stop else None,
    }
    if request.user.has_perm("taskqueue.view_schedule"):
        context |= _schedules()
    if request.user.has_perm(VIEW_ALERTS):
        context["alerts"] = firing_alerts(limit=MOST_ALERTS)
    if request.user.has_perm("taskqueue.view_workflow"):
        context["workflows"] = workflow_overview()
    return context


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
    """Return the overall state; idle workers are not missing workers.

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


OF_WORKERS = frozenset({"lost_worker", "worker_trouble"})
OF_SCHEDULES = frozenset({"schedule_trouble", "schedule_paused_itself", "schedule_overdue"})
# Any one of these permissions is enough.
NEEDS = {
    OF_WORKERS: ("taskqueue.view_worker",),
    OF_SCHEDULES: ("taskqueue.view_schedule", EDIT_SCHEDULES),
}
LONGEST_DETAIL = 300


def visible(request: HttpRequest, notices: Sequence[Notice]) -> list[Notice]:
    """Return the notices that the user may view."""
    hidden: set[str] = set()
    for codes, permissions in NEEDS.items():
        if not any(map(request.user.has_perm, permissions)):
            hidden |= codes
    return [notice for notice in notices if notice.code not in hidden]


def sentence(notice: Notice, links: Links) -> SafeString:
    """Return the sentence of the notice."""
    return format_html(
        _template(notice.code, notice.count or 0),
        count=str(Count(notice.count or 0, notice.is_capped)),
        subject=_subject(notice, links),
        total=number(notice.total or 0),
        example=notice.example and links.to_row(Task, UUID(notice.example), notice.example),
        detail=Truncator(notice.detail).chars(LONGEST_DETAIL),
        age=short_duration(notice.seconds or 0.0),
        command=format_html("<code>{}</code>", "manage.py runworker"),
    )


def _template(code: str, count: int) -> str:
    """Return the sentence with its gaps."""
    if code == "no_worker" and not count:
        return _("No workers are running. Queued tasks wait until you start one with {command}.")
    words = {
        "no_worker": ngettext(
            "{count} task is waiting, and no workers are running. Start one with {command}.",
            "{count} tasks are waiting, and no workers are running. Start one with {command}.",
            count,
        ),
        "unserved_queue": ngettext(
            "{count} task is waiting, and no running worker serves the queue {subject}.",
            "{count} tasks are waiting, and no running worker serves the queue {subject}.",
            count,
        ),
        "all_paused": _("Everything is paused{detail}: no worker claims any task."),
        "definition_paused": _("The definition {subject} is paused{detail}."),
        "paused_with_waiting": ngettext(
            "{count} task is waiting while the queue {subject} is paused.",
            "{count} tasks are waiting while the queue {subject} is paused.",
            count,
        ),
        "stalled": ngettext(
            "{count} task has waited on the queue {subject} for more than a minute, although a "
            "worker that serves it has a free slot.",
            "{count} tasks are waiting on the queue {subject}, the oldest for more than a minute, "
            "although a worker that serves it has a free slot.",
            count,
        ),
        "late_queue": ngettext(
            "{count} task is waiting on the queue {subject}, for {age} by now: its workers are "
            "busy.",
            "{count} tasks are waiting on the queue {subject}, the oldest for {age}: its workers "
            "are busy.",
            count,
        ),
        "deep_queue": _("{count} tasks are waiting on the queue {subject}."),
        "schedule_overdue": ngettext(
            "{count} schedule is overdue: {subject}, for {age}.",
            "{count} schedules are overdue. The first is {subject}, for {age}.",
            count,
        ),
        "failing": _(
            "{count} of {total} attempts on the queue {subject} failed within the last 15 minutes."
        ),
        "absent_workers": ngettext(
            "{count} task on the queue {subject} waits for workers that are not running: "
            "{example} waits for {detail}.",
            "{count} tasks on the queue {subject} wait for workers that are not running. The "
            "oldest is {example}, which waits for {detail}.",
            count,
        ),
        "too_few_workers": ngettext(
            "{count} task on the queue {subject} waits for more workers than are running: "
            "{example}.",
            "{count} tasks on the queue {subject} wait for more workers than are running. The "
            "oldest is {example}.",
            count,
        ),
        "parked": ngettext(
            "{count} task named {subject} is parked: the workers that claimed it do not know this "
            "name. Start workers that run the current code.",
            "{count} tasks named {subject} are parked: the workers that claimed them do not know "
            "this name. Start workers that run the current code.",
            count,
        ),
        "lost_worker": _("The worker {subject} is lost: it sent no heartbeat within its lease."),
        "worker_trouble": _("The worker {subject} reports a problem: {detail}"),
        "schedule_trouble": _("The schedule {subject} cannot run: {detail}"),
        "schedule_paused_itself": ngettext(
            "The schedule {subject} paused itself after {count} failed run. Resume it when the "
            "cause is fixed.",
            "The schedule {subject} paused itself after {count} failed runs in a row. Resume it "
            "when the cause is fixed.",
            count,
        ),
        "lost_holds": ngettext(
            "{count} task is held by a lost worker whose lease has not expired: {subject}. Stop or "
            "retry it to end the lease now.",
            "{count} tasks are held by lost workers whose leases have not expired, such as "
            "{subject}. Stop or retry them to end the leases now.",
            count,
        ),
        "wedged": _(
            "The task {subject} seems wedged: it has been running far longer than similar tasks, "
            "with no sign of progress."
        ),
    }
    return words[code]


def _subject(notice: Notice, links: Links) -> SafeString:
    if notice.code in OF_WORKERS:
        return links.to_list(Worker, notice.subject, q=notice.subject)
    if notice.code in OF_SCHEDULES:
        return links.to_list(Schedule, notice.subject, q=notice.subject)
    if notice.code in ("parked", "definition_paused"):
        return links.to_list(Task, notice.subject, q=search_text(name=notice.subject))
    if notice.code in ("wedged", "lost_holds"):
        return links.to_row(Task, UUID(notice.subject), notice.subject)
    return format_html('<a href="{}">{}</a>', links.queue_url(notice.subject), notice.subject)
