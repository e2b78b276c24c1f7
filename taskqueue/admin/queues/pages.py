"""Queues: the list, and the page of one with its figures."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from taskqueue.admin.charts import outcomes_chart, sparkline, times_chart
from taskqueue.admin.links import Links
from taskqueue.admin.queues.acts import LONGEST_PAUSE, QueueActs
from taskqueue.admin.reports import RowReportAdmin, report, span_of, span_tabs
from taskqueue.admin.workers.rows import line_of
from taskqueue.display import EMPTY, badge, moment, short_duration
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Audit, Queue, Task
from taskqueue.monitoring.read_models.queue import ShownQueue, read_queues
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.searching import search_text
from taskqueue.monitoring.series import series

MOST_QUEUES, MOST_WORKERS = 500, 1000


class QueueAdmin(QueueActs, RowReportAdmin):
    """A queue has a row after a worker has seen it; before, it has a page by its name."""

    list_template = "admin/taskqueue/queue/change_list.html"
    routes = (("named/", "named"), ("<path:name>/act/", "act"))
    page_template = "admin/taskqueue/queue/page.html"

    class Media:
        css = {"all": ["taskqueue/charts.css", "taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Show all queues, or those whose names contain the search text."""
        queues, text = read_queues(limit=MOST_QUEUES), request.GET.get("q", "").strip()
        return report(
            self, request, self.list_template, _("Queues"),
            lines=[queue_line(queue, self.links) for queue in queues if text in queue.name],
            text=text,
            is_cut=len(queues) == MOST_QUEUES,
            may_control=self.has_control_permission(request),
            longest_pause=LONGEST_PAUSE,
        )  # fmt: skip

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Show the page of a queue by its row."""
        return self._page(request, row.name, row)

    def named_view(self, request: HttpRequest) -> HttpResponse:
        """Show the page of a queue by its name."""
        self.check_look(request)
        name = request.GET.get("name", "")
        if not name or not is_storable(name):
            self.message_user(request, _("This is not a valid queue name."), messages.ERROR)
            return self.links.redirect("queue_changelist")
        queues = Queue.objects.using(database_alias())
        return self._page(request, name, queues.filter(name=name).first())

    def _page(self, request: HttpRequest, name: str, row: Queue | None) -> HttpResponse:
        workers = read_workers(limit=MOST_WORKERS)
        queues = read_queues(limit=MOST_QUEUES, workers=workers)
        figures = next((queue for queue in queues if queue.name == name), None)
        span = span_of(request)
        steps = series(span, queue_name=name)
        sees_workers = request.user.has_perm("taskqueue.view_worker")
        serving = [worker for worker in workers if worker.is_alive and worker.serves(name)]
        return report(
            self, request, self.page_template, name,
            line=None if figures is None else queue_line(figures, self.links),
            row=row,
            created=moment(row.created_at) if row is not None else EMPTY,
            workers=[line_of(worker, self.links) for worker in serving] if sees_workers else None,
            spans=span_tabs(span, **_named(request)),
            outcomes=outcomes_chart(steps),
            times=times_chart(steps),
            links=_more(request, name, self.links),
            history_url=None if row is None
            else self.links.url("queue_history", row.pk),
            may_control=self.has_control_permission(request),
            longest_pause=LONGEST_PAUSE,
        )  # fmt: skip


def _named(request: HttpRequest) -> dict[str, str]:
    """Return the parameters that links must keep if the queue is found by name only."""
    return {"name": request.GET["name"]} if "name" in request.GET else {}


def queue_line(queue: ShownQueue, links: Links) -> dict[str, Any]:
    """A queue as lists and the head of its page show it."""
    return {
        "queue": queue,
        "url": links.queue_url(queue.name),
        "act_url": links.queue_act_url(queue.name),
        "badge": queue_badge(queue),
        "waiting_url": links.list_url(Task, q=search_text(status="ready", queue=queue.name)),
        "oldest": short_duration(queue.oldest_seconds) or EMPTY,
        "lately": sparkline(queue.finished_lately),
        "paused_at": moment(queue.paused_at),
        "paused_until": moment(queue.paused_until) if queue.paused_until else "",
    }


def queue_badge(queue: ShownQueue) -> Any:
    """Whether it is paused, open, or served by no worker."""
    if queue.is_paused:
        return badge("paused")
    return badge("active", _("open")) if queue.is_served else badge("unserved")


def _more(request: HttpRequest, name: str, links: Links) -> list[tuple[str, str]]:
    """Return links to tasks and audit entries of the queue that the user may view."""
    more = []
    if request.user.has_perm("taskqueue.view_task"):
        more.append((_("Tasks"), links.list_url(Task, q=search_text(queue=name))))
        failed = search_text(status="failed", queue=name)
        more.append((_("Failed tasks"), links.list_url(Task, q=failed)))
    if request.user.has_perm("taskqueue.view_audit"):
        more.append((_("Audit entries"), links.list_url(Audit, q=name)))
    return more
