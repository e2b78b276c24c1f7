"""Workers: which live, what they serve, and what troubles them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from taskqueue.admin.display import as_json, link_to_list, moments, preformatted
from taskqueue.admin.workers.acts import WorkerActs
from taskqueue.models import Lease, Worker
from taskqueue.models.clock import DatabaseClock
from taskqueue.models.worker import WorkerStatus


class WorkerAdmin(WorkerActs):
    """A worker lives while it was seen within its lease, by the database's clock."""

    columns = (
        "name", "host", "pid", "status", "pool", "concurrency", "running_leases", "seen_at",
        "lease_seconds", "started_at", "request",
    )  # fmt: skip
    list_display = (
        "name", "is_alive", "status", "request", "host", "pid", "pool", "concurrency",
        "running_leases", *moments("seen_at", "started_at"),
    )  # fmt: skip
    list_filter = ("status",)
    lookups = ("status__exact",)
    search_fields = ("name",)
    search_help_text = "The whole name of a worker."
    fields = (
        "name", "is_alive", "status", "shown_trouble", "host", "pid", "served", "pool",
        "concurrency", "running_leases", "leases", "lease_seconds", "shown_versions",
        *moments("started_at", "seen_at", "stopped_at"), "request",
        *moments("requested_at", "request_seen_at"), "requested_by", "request_reason",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Any:
        workers = super().get_queryset(request)
        return workers.annotate(now=DatabaseClock())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return (queryset.filter(name=search_term) if search_term else queryset), False

    @admin.display(description="alive", boolean=True)
    def is_alive(self, worker: Any) -> bool:
        is_at_work = worker.status not in (WorkerStatus.STOPPED, WorkerStatus.LOST)
        lease = timedelta(seconds=worker.lease_seconds)
        return is_at_work and bool(worker.now - worker.seen_at < lease)

    @admin.display(description="queues and their weights")
    def served(self, worker: Worker) -> Any:
        return as_json(worker.queues) if worker.queues else "all"

    @admin.display(description="versions")
    def shown_versions(self, worker: Worker) -> SafeString:
        return as_json(worker.versions)

    @admin.display(description="trouble")
    def shown_trouble(self, worker: Worker) -> SafeString:
        return preformatted(worker.trouble)

    @admin.display(description="what it holds now")
    def leases(self, worker: Worker) -> SafeString:
        return link_to_list(
            Lease, "running leases", worker__name__exact=worker.name, status__exact="running"
        )
