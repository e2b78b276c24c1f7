"""`export`: the matching tasks, as JSON Lines or CSV."""

from __future__ import annotations

from argparse import Namespace

from taskqueue.engine.connections import database_alias
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import argument, subcommand
from taskqueue.management.cli.values import FILTER_FLAGS, filter_of, has_filters, whole_number
from taskqueue.models import Task
from taskqueue.monitoring.exporting import FORMATS
from taskqueue.monitoring.read_models.base import COMMAND_LINE, json_form
from taskqueue.monitoring.read_models.task import ExportedTask, task_as, task_columns
from taskqueue.monitoring.searching.finding import Effort, find

BATCH = 500
MOST = 100_000_000
# Nobody waits for a page here, so a search may read as much as it needs.
EFFORT = Effort(largest=200_000, most=2_000_000, windows=20, seconds=10.0)


@subcommand(
    "export",
    "all tasks that match, the newest first, with redacted arguments: for files and other programs",
    FILTER_FLAGS,
    argument("--all", action="store_true", help="every task"),
    argument("--limit", type=whole_number(MOST), default=MOST, help="at most this many tasks"),
    argument(
        "--as", dest="kind", choices=sorted(FORMATS), default="jsonl",
        help="an object a line, or CSV that spreadsheets can open; default: jsonl",
    ),
    example="export --query 'status:failed' --as csv > failed.csv",
)  # fmt: skip
def export(flags: Namespace, output: Output) -> None:
    if has_filters(flags) == flags.all:
        either = "not both" if flags.all else "or --all for every task"
        raise usage_error(f"Give flags that choose tasks, {either}.")
    which = filter_of(flags, everything=flags.all)
    rows = Task.objects.using(database_alias()).only(*task_columns(ExportedTask))
    form = FORMATS[flags.kind]()
    output.raw(form.heading())
    cursor, left = "", flags.limit
    while left > 0:
        page = find(which, tasks=rows, before=cursor, limit=min(BATCH, left), effort=EFFORT)
        # Holders of a searched key come with the first page.
        found = {task.pk: task for task in (*page.tasks, *(() if cursor else page.holders))}
        shown = (json_form(task_as(ExportedTask, each, COMMAND_LINE)) for each in found.values())
        output.raw(form.rows(shown))
        cursor, left = page.older, left - len(found)
        if not cursor:
            return
