"""Workers: the list, and the page of one with its running and recent attempts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.formats import number_format
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from taskqueue.access.permissions import STOP
from taskqueue.admin.links import Links
from taskqueue.admin.reports import RowReportAdmin, report
from taskqueue.admin.workers.acts import WorkerActs
from taskqueue.admin.workers.rows import asked, line_of
from taskqueue.display import EMPTY, as_json, badge, breakable, moment, preformatted, short_duration
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Audit, Lease, Task, Worker
from taskqueue.models.clock import DatabaseClock
from taskqueue.monitoring.read_models.worker import QUIET, ShownWorker, read_workers, worker_named

MOST_WORKERS = 200


class WorkerAdmin(WorkerActs, RowReportAdmin):
    """A worker is alive while it was seen within its lease, by the database's clock."""

    list_template = "admin/taskqueue/worker/change_list.html"
    routes = (("<int:object_id>/act/", "act"), ("resume/", "resume_all"))
    page_template = "admin/taskqueue/worker/page.html"

    class Media:
        css = {"all": ["taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        """Show all workers, or those whose name or host contains the search text."""
        text = request.GET.get("q", "").strip()
        workers = [worker for worker in read_workers(limit=MOST_WORKERS) if _holds(worker, text)]
        if text and not workers and (older := _older(text)) is not None:
            return self.links.redirect("worker_change", older.pk)
        return report(
            self, request, self.list_template, _("Workers"),
            living=[line_of(worker, self.links) for worker in workers if worker.is_alive],
            gone=[line_of(worker, self.links) for worker in workers if not worker.is_alive],
            text=text,
            has_quiet=any(worker.is_alive and worker.request == QUIET for worker in workers),
            may_stop=self.has_stop_permission(request),
        )  # fmt: skip

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """Show the page of one worker."""
        worker = worker_named(row.name)
        if worker is None:  # Deleted by its retention at this moment.
            raise Http404
        sees_leases = request.user.has_perm("taskqueue.view_lease")
        running = {"worker__name__exact": worker.name, "status__exact": "running"}
        return report(
            self, request, self.page_template, worker.name,
            worker=worker,
            line=line_of(worker, self.links),
            figures=_figures(worker),
            trouble=preformatted(worker.trouble) if worker.trouble else "",
            request_text=asked(worker.request),
            requested_at=moment(worker.requested_at),
            request_seen_at=moment(worker.request_seen_at) if worker.request_seen_at else "",
            held=held(request, self.links, worker.name) if sees_leases else None,
            past=past(self.links, worker.name) if sees_leases else None,
            looked_through=number_format(NEWEST, force_grouping=True),
            held_url=self.links.list_url(Lease, **running) if sees_leases else "",
            audit_url=self.links.list_url(Audit, q=worker.name)
            if request.user.has_perm("taskqueue.view_audit") else "",
            history_url=self.links.url("worker_history", worker.id),
            may_stop=self.has_stop_permission(request),
        )  # fmt: skip


def _holds(worker: ShownWorker, text: str) -> bool:
    return text in worker.name or text in worker.host


def _older(name: str) -> Worker | None:
    """Return a worker that stopped too long ago to be listed, by its full name."""
    workers = Worker.objects.using(database_alias())
    return workers.filter(name=name).first() if is_storable(name) else None


def _wakes(listens: bool) -> str:
    return _("by notification") if listens else _("by polling, behind a pooler")


def _figures(worker: ShownWorker) -> list[tuple[str, Any]]:
    """The details of a worker."""
    return [
        (_("Host"), worker.host),
        (_("Process id"), str(worker.pid)),
        (_("Pool"), worker.pool),
        (_("Queues and their weights"), as_json(worker.weights) if worker.weights else _("all")),
        *([] if worker.listens is None else [(_("Wakes up"), _wakes(worker.listens))]),
        (_("Lease"), _("%(seconds)s s") % {"seconds": f"{worker.lease_seconds:g}"}),
        (_("Started"), moment(worker.started_at)),
        (_("Last seen"), moment(worker.seen_at)),
        (_("Stopped"), moment(worker.stopped_at) if worker.stopped_at else EMPTY),
        (_("Versions"), as_json(worker.versions)),
    ]


MOST_HELD, MOST_PAST = 50, 20
NEWEST = 10_000
"""Attempts of all workers that are searched for those of one: no index finds them."""
LONGEST_MESSAGE = 160
COLUMNS = (
    "task_id", "attempt", "status", "claimed_at", "started_at", "finished_at", "progress",
    "progress_message", "stop_requested_at", "wedged_at", "error_class",
)  # fmt: skip
# The condition of the index of what runs: in the text, or SQLite would not use it.
IS_RUNNING = "taskqueue_lease.status = 'running'"


def _of(worker: str) -> QuerySet[Any]:
    return Lease.objects.using(database_alias()).filter(worker_id=worker).only(*COLUMNS)


def _names(leases: Iterable[Any]) -> dict[Any, str]:
    """Return the names of the tasks that exist: a join would leave out the other attempts."""
    tasks = Task.objects.using(database_alias())
    return dict(tasks.filter(id__in=[lease.task_id for lease in leases]).values_list("id", "name"))


def held(request: HttpRequest, links: Links, worker: str) -> list[dict[str, Any]]:
    """Return the running attempts, the longest first, with a stop button for users who may stop."""
    running = list(
        _of(worker)
        .filter(RawSQL(IS_RUNNING, (), output_field=BooleanField()))  # noqa: S611  (a constant)
        .annotate(now=DatabaseClock())
        .order_by("id")[:MOST_HELD]
    )
    may_stop = bool(request.user.has_perm(STOP))
    names = _names(running)
    return [_held(lease, names, links, may_stop=may_stop) for lease in running]


def _held(lease: Any, names: dict[Any, str], links: Links, *, may_stop: bool) -> dict[str, Any]:
    since = lease.started_at or lease.claimed_at
    return {
        "task": _task(lease, names, links),
        "attempt": links.to_row(Lease, lease.pk, lease.attempt),
        "since": moment(since),
        "age": short_duration(max(0.0, (lease.now - since).total_seconds())),
        "is_started": lease.started_at is not None,
        "percent": None if lease.progress is None else f"{lease.progress:.0f}",
        "message": Truncator(lease.progress_message).chars(LONGEST_MESSAGE),
        "is_stopping": lease.stop_requested_at is not None,
        "is_wedged": lease.wedged_at is not None,
        "stop_url": links.url_if_any("task_act", lease.task_id)
        if may_stop and lease.stop_requested_at is None
        else "",
    }


def past(links: Links, worker: str) -> list[dict[str, Any]]:
    """Return its finished attempts among the newest attempts of all workers."""
    rows = Lease.objects.using(database_alias())
    newest = rows.order_by("-id").values_list("id", flat=True).first()
    if newest is None:
        return []
    ended = _of(worker).filter(id__gt=newest - NEWEST, finished_at__isnull=False)
    found = list(ended.order_by("-id")[:MOST_PAST])
    names = _names(found)
    return [_past(lease, names, links) for lease in found]


def _past(lease: Any, names: dict[Any, str], links: Links) -> dict[str, Any]:
    ran = None
    if lease.started_at is not None:
        ran = max(0.0, (lease.finished_at - lease.started_at).total_seconds())
    return {
        "task": _task(lease, names, links),
        "attempt": links.to_row(Lease, lease.pk, lease.attempt),
        "badge": badge(lease.status),
        "finished_at": moment(lease.finished_at),
        "ran": short_duration(ran) or EMPTY,
        "error": breakable(lease.error_class),
    }


def _task(lease: Any, names: dict[Any, str], links: Links) -> Any:
    """Link to the task; a pruned one is shown by its id."""
    if lease.task_id not in names:
        return str(lease.task_id)
    return links.to_row(Task, lease.task_id, breakable(names[lease.task_id]))
