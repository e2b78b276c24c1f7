"""`list`: the newest tasks that fit."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import add_filters, filter_of, has_filters
from taskqueue.models import Task

MOST = 1000
COLUMNS = ("id", "name", "status", "queue", "priority", "attempts", "run_after", "error")
READ = (
    "id", "name", "status", "queue_name", "priority", "attempt", "failures", "crashes",
    "run_after", "enqueued_at", "started_at", "finished_at", "error_class", "unique_key",
)  # fmt: skip


def _add_list(parser: ArgumentParser) -> None:
    add_filters(parser)
    parser.add_argument("--limit", type=_limit, default=50, help=f"at most {MOST}; default: 50")


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise ArgumentTypeError(f"must be a whole number from 1 to {MOST}")
    return int(text)


def _list(flags: Namespace, output: Output) -> None:
    which = filter_of(flags, everything=not has_filters(flags))
    tasks = which.tasks(project_connection()).only(*READ).order_by("-id")[: flags.limit]
    output.table([_row(task) for task in tasks], COLUMNS)


def _row(task: Task) -> dict[str, Any]:
    return {
        "id": str(task.id),
        "name": task.name,
        "status": task.status,
        "queue": task.queue_name,
        "priority": task.priority,
        "attempts": task.attempt,
        "failures": task.failures,
        "crashes": task.crashes,
        "run_after": task.run_after,
        "enqueued_at": task.enqueued_at,
        "started_at": task.started_at,
        "finished_at": task.finished_at,
        "error": task.error_class,
        "unique_key": task.unique_key,
    }


LIST = Subcommand(
    name="list",
    help="the newest tasks that fit",
    add_arguments=_add_list,
    run=_list,
)
