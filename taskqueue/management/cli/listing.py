"""`list`: the newest tasks that match."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.management.cli.base import Subcommand, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import add_filters, filter_of, has_filters
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.task import TaskSummary, task_as, task_columns
from taskqueue.monitoring.searching import Page, find
from taskqueue.monitoring.searching.orders import is_cursor

MOST = 1000
PAGES = 20
"""Pages of the admin that a search may read."""
COLUMNS = (
    "id", "name", "status", "queue_name", "priority", "attempts", "run_after", "error_class",
)  # fmt: skip


def _add_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words", nargs="*", metavar="QUERY",
        help="as in the admin's search, such as 'status:failed name:mail.* error:KeyError'",
    )  # fmt: skip
    add_filters(parser)
    parser.add_argument("--limit", type=_limit, default=50, help=f"at most {MOST}; default: 50")
    parser.add_argument(
        "--cursor", type=_cursor,
        help="continue after a list, by the cursor that it printed; '' for the first page. JSON "
        "is then: "
        "`tasks`, and `next`, the cursor of the next page",
    )  # fmt: skip


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise ArgumentTypeError(f"must be a whole number from 1 to {MOST}")
    return int(text)


def _cursor(text: str) -> str:
    if text and not is_cursor(text):
        raise ArgumentTypeError("is not a cursor of a list")
    return text


def _list(flags: Namespace, output: Output) -> None:
    if flags.words:
        if flags.query:
            raise usage_error("Give the query as arguments or by --query, not both.")
        flags.query = " ".join(flags.words)
    which = filter_of(flags, everything=not has_filters(flags))
    tasks, last = _found(which, limit=flags.limit, cursor=flags.cursor or "")
    summaries = [task_as(TaskSummary, task, COMMAND_LINE) for task in tasks]
    if output.is_json and flags.cursor is not None:
        output.sheet({"tasks": summaries, "next": last.older or None})
        return
    output.models(summaries, COLUMNS)
    if last.older:
        output.note(_more(last))


def _found(which: TaskFilter, *, limit: int, cursor: str) -> tuple[list[Task], Page]:
    """Return the tasks, and the last page that was read for them."""
    rows = Task.objects.using(database_alias()).only(*task_columns(TaskSummary))
    page = find(which, tasks=rows, before=cursor, limit=limit)
    found = [*page.tasks, *page.holders]
    for _ in range(PAGES):
        if not page.is_cut_short or len(found) >= limit:
            break
        page = find(which, tasks=rows, before=page.older, limit=limit - len(found))
        known = {task.pk for task in found}
        found += [task for task in page.tasks if task.pk not in known]
    return found, page


def _more(page: Page) -> str:
    if page.searched_to is not None:
        return f"Searched back to {page.searched_to:%Y-%m-%d %H:%M} UTC. Continue: --cursor "
        f"{page.older}"
    return f"More tasks match: --cursor {page.older}"


LIST = Subcommand(
    name="list",
    help="the newest tasks that match",
    add_arguments=_add_list,
    run=_list,
    example="list 'status:failed name:mail.*' --limit 20",
)
