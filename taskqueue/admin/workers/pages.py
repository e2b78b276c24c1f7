"""Workers: those at work and those that are gone, and a page of one with what it holds."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from taskqueue.admin.display import EMPTY, as_json, moment, preformatted
from taskqueue.admin.reports import RowReportAdmin, report
from taskqueue.admin.workers.acts import WorkerActs
from taskqueue.admin.workers.attempts import NEWEST, held, past
from taskqueue.admin.workers.rows import asked, line_of
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Audit, Lease, Worker
from taskqueue.monitoring.read_models.worker import QUIET, ShownWorker, read_workers, worker_named

MOST_WORKERS = 200


class WorkerAdmin(WorkerActs, RowReportAdmin):
    """A worker lives while it was seen within its lease, by the database's clock."""

    list_template = "admin/taskqueue/worker/change_list.html"
    page_template = "admin/taskqueue/worker/page.html"

    class Media:
        css = {"all": ["taskqueue/pages.css"]}

    def shown(self, request: HttpRequest) -> HttpResponse:
        """All workers, or those whose name or host holds what is searched for."""
        text = request.GET.get("q", "").strip()
        found = [each for each in read_workers(limit=MOST_WORKERS) if _holds(each, text)]
        if text and not found and (older := _older(text)) is not None:
            return self.links.redirect("worker_change", older.pk)
        return report(
            self, request, self.list_template, _("Workers"),
            living=[line_of(each, self.links) for each in found if each.is_alive],
            gone=[line_of(each, self.links) for each in found if not each.is_alive],
            text=text,
            has_quiet=any(each.is_alive and each.request == QUIET for each in found),
            may_stop=self.has_stop_permission(request),
        )  # fmt: skip

    def shown_row(self, request: HttpRequest, row: Any) -> HttpResponse:
        """The page of one."""
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
    """One that was gone too long ago to be listed, by its whole name."""
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
