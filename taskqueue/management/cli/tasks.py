"""`list`, `show` and `why`: the tasks that match, and one task with what keeps or ended it."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import id_of
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import FILTER_FLAGS, filter_of, has_filters
from taskqueue.management.cli.subcommand import ID, argument, subcommand
from taskqueue.management.cli.values import whole_number
from taskqueue.models import Task
from taskqueue.models.task import Route
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.task import TaskSummary, task_as, task_columns, task_history
from taskqueue.monitoring.searching.finding import Page, find
from taskqueue.monitoring.searching.orders import is_cursor
from taskqueue.monitoring.why import why as reasons_why
from taskqueue.results.reading import row_of

MOST = 1000
# Pages of the admin that a search may read.
PAGES = 20
COLUMNS = (
    "id", "name", "status", "queue_name", "priority", "attempts", "run_after", "error_class",
)  # fmt: skip
# Fields that the text leaves out, since the attempts and the status say it.
IN_ATTEMPTS = ("running", "errors", "can", "is_finished")
# Fields that matter only for tasks of several or named workers.
OF_SEVERAL = ("workers", "broadcast", "open_slots", "running_leases", "successes")


def _cursor(text: str) -> str:
    if text and not is_cursor(text):
        raise ArgumentTypeError("is not a cursor of a list")
    return text


@subcommand(
    "list",
    "the newest tasks that match",
    argument(
        "words", nargs="*", metavar="QUERY",
        help="as in the admin's search, such as 'status:failed name:mail.* error:KeyError'",
    ),
    FILTER_FLAGS,
    argument("--limit", type=whole_number(MOST), default=50, help=f"at most {MOST}; default: 50"),
    argument(
        "--cursor", type=_cursor,
        help="continue after a list, by the cursor that it printed; '' for the first page. JSON "
        "is then: `tasks`, and `next`, the cursor of the next page",
    ),
    example="list 'status:failed name:mail.*' --limit 20",
)  # fmt: skip
def listed(flags: Namespace, output: Output) -> None:
    if flags.words:
        if flags.query:
            raise usage_error("Give the query as arguments or by --query, not both.")
        flags.query = " ".join(flags.words)
    which = filter_of(flags, everything=not has_filters(flags))
    rows, last = _found(which, limit=flags.limit, cursor=flags.cursor or "")
    summaries = [task_as(TaskSummary, task, COMMAND_LINE) for task in rows]
    if output.is_json and flags.cursor is not None:
        output.sheet({"tasks": summaries, "next": last.older or None})
        return
    output.models(summaries, COLUMNS)
    if last.searched_to is not None and last.older:
        searched_to = f"{last.searched_to:%Y-%m-%d %H:%M} UTC"
        output.note(f"Searched back to {searched_to}. Continue: --cursor {last.older}")
    elif last.older:
        output.note(f"More tasks match: --cursor {last.older}")


def _found(which: TaskFilter, *, limit: int, cursor: str) -> tuple[list[Task], Page]:
    """Return the tasks, and the last page that was read for them."""
    rows = Task.objects.using(database_alias()).only(*task_columns(TaskSummary))
    page = find(which, tasks=rows, before=cursor, limit=limit)
    found = {task.pk: task for task in (*page.tasks, *page.holders)}
    for _ in range(PAGES):
        if not page.is_cut_short or len(found) >= limit:
            break
        page = find(which, tasks=rows, before=page.older, limit=limit - len(found))
        found |= {task.pk: task for task in page.tasks}
    return list(found.values()), page


@subcommand(
    "show",
    "one task, with its attempts and its audit entries",
    ID,
    example="show 01a2022f-c607-74e3-a122-9f8b03c681f8 --format json",
)
def show(flags: Namespace, output: Output) -> None:
    task = row_of(id_of(flags.id))
    needless = IN_ATTEMPTS if task.route == Route.APART else (*IN_ATTEMPTS, *OF_SEVERAL)
    output.sheet(task_history(task, COMMAND_LINE), without=needless)


@subcommand(
    "why",
    "what keeps a task from running, who holds it, or how it ended",
    ID,
    example="why 01a2022f-c607-74e3-a122-9f8b03c681f8",
)
def why(flags: Namespace, output: Output) -> None:
    task = row_of(id_of(flags.id))
    reasons = reasons_why(task)
    about = {name: getattr(task, name) for name in ("id", "name", "status", "queue_name")}
    heading = f"{task.id}  {task.name}  {task.status}  queue {task.queue_name}"
    lines = [heading, *(f"  {reason.sentence}" for reason in reasons)]
    output.say(
        (line.replace("\n", " ") for line in lines),
        {**about, "reasons": [reason.as_dict() for reason in reasons]},
    )
