"""`workers`: the workers, and the requests to them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.monitoring.read_models.worker import GONE, shown_worker, worker_rows

MOST = 1000
COLUMNS = (
    "name", "state", "host", "pid", "queues", "busy", "slots", "memory_bytes", "version",
    "seen_seconds", "request", "trouble",
)  # fmt: skip


def _add_workers(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="include workers that have ended")
    parser.add_argument("--host", help="only workers on this host")
    parser.add_argument("--queue", help="only workers that serve this queue")


def _workers(flags: Namespace, output: Output) -> None:
    rows = worker_rows().order_by("name")
    if not flags.all:
        rows = rows.exclude(status__in=GONE)
    if flags.host:
        rows = rows.filter(host=flags.host)
    workers = map(shown_worker, rows[:MOST])
    output.models(
        [worker for worker in workers if not flags.queue or worker.serves(flags.queue)], COLUMNS
    )


WORKERS = Subcommand(
    name="workers",
    help="the workers: their state, slots and requests",
    add_arguments=_add_workers,
    run=_workers,
    example="workers --queue mail",
)
