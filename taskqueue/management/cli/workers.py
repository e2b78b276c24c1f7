"""`workers`: who is there, and what was asked of them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import timedelta
from typing import Any

from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.durations import size
from taskqueue.management.cli.output import Output
from taskqueue.models import Worker
from taskqueue.models.clock import DatabaseClock
from taskqueue.models.worker import WorkerStatus

MOST = 1000
GONE = (WorkerStatus.STOPPED.value, WorkerStatus.LOST.value)
COLUMNS = (
    "worker", "status", "alive", "host", "pid", "queues", "slots", "running", "memory", "version",
    "seen", "request", "trouble",
)  # fmt: skip


def _add_workers(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="those that have ended, too")
    parser.add_argument("--host", help="those of this host alone")
    parser.add_argument("--queue", help="those alone that take tasks from this queue")


def _workers(flags: Namespace, output: Output) -> None:
    workers: Any = Worker.objects.using(project_connection().alias).annotate(now=DatabaseClock())
    if not flags.all:
        workers = workers.exclude(status__in=GONE)
    if flags.host:
        workers = workers.filter(host=flags.host)
    found = [
        worker
        for worker in workers.order_by("name")[:MOST]
        if not flags.queue or not worker.queues or flags.queue in worker.queues
    ]
    output.table(list(map(_row, found)), COLUMNS)


def _row(worker: Any) -> dict[str, Any]:
    silence = max(timedelta(0), worker.now - worker.seen_at)
    return {
        "worker": worker.name,
        "status": worker.status,
        "alive": worker.status not in GONE and silence.total_seconds() < worker.lease_seconds,
        "host": worker.host,
        "pid": worker.pid,
        "pool": worker.pool,
        "queues": ",".join(worker.queues) or "all",
        "slots": worker.concurrency,
        "running": worker.running_leases,
        "memory_bytes": worker.memory_bytes,
        "memory": size(worker.memory_bytes),
        "version": str(worker.versions.get("taskqueue", "")),
        "versions": worker.versions,
        "started_at": worker.started_at,
        "seen_at": worker.seen_at,
        "seen": f"{silence.total_seconds():.1f} s ago",
        "stopped_at": worker.stopped_at,
        "trouble": worker.trouble,
        "request": worker.request,
        "requested_at": worker.requested_at,
        "requested_by": worker.requested_by,
        "request_reason": worker.request_reason,
        "request_seen_at": worker.request_seen_at,
    }


WORKERS = Subcommand(
    name="workers",
    help="who is there, and what was asked of them",
    add_arguments=_add_workers,
    run=_workers,
    example="workers --queue mail",
)
