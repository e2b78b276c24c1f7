"""The flags that choose workers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue.engine.control import WorkerFilter
from taskqueue.management.cli.base import given, usage_error

CHOICE = "--worker, --host, --queue or --all-workers"


def add_worker_choice(parser: ArgumentParser, *, instead_of: str) -> None:
    """Add the flags."""
    workers = parser.add_argument_group(f"workers in place of {instead_of}")
    workers.add_argument(
        "--worker", action="append", type=given, metavar="NAME", help="may be repeated"
    )
    workers.add_argument("--all-workers", action="store_true")
    workers.add_argument("--host", type=given)
    workers.add_argument("--queue", type=given, help="all that take tasks from this queue")


def chosen_workers(flags: Namespace) -> WorkerFilter | None:
    """Return the chosen workers; None where no flag chooses any. Raises CommandError."""
    if not (flags.worker or flags.all_workers or flags.host or flags.queue):
        return None
    if flags.all_workers and (flags.worker or flags.host or flags.queue):
        raise usage_error("--all-workers is for every worker: leave it out, or the other flags.")
    return WorkerFilter(
        names=flags.worker,
        host=flags.host or "",
        queue_name=flags.queue or "",
        everyone=flags.all_workers,
    )
