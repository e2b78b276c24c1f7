"""`workers`, and the flags that choose workers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue.engine.control.workers import WorkerFilter
from taskqueue.management.cli.base import Subcommand, given, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.monitoring.read_models.worker import GONE, shown_worker, worker_rows

CHOICE = "--worker, --host, --queue or --all-workers"


def add_worker_choice(parser: ArgumentParser, *, instead_of: str) -> None:
    """Add flags that choose workers."""
    workers = parser.add_argument_group(f"workers in place of {instead_of}")
    workers.add_argument(
        "--worker", action="append", type=given, metavar="NAME", help="may be repeated"
    )
    workers.add_argument("--all-workers", action="store_true")
    workers.add_argument("--host", type=given)
    workers.add_argument("--queue", type=given, help="all workers that serve this queue")


def chosen_workers(flags: Namespace) -> WorkerFilter | None:
    """Return the chosen workers; None where no flag chooses any. Raises CommandError."""
    if not (flags.worker or flags.all_workers or flags.host or flags.queue):
        return None
    if flags.all_workers and (flags.worker or flags.host or flags.queue):
        raise usage_error("--all-workers chooses every worker: omit it, or the other flags.")
    return WorkerFilter(
        names=flags.worker,
        host=flags.host or "",
        queue_name=flags.queue or "",
        everyone=flags.all_workers,
    )


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
