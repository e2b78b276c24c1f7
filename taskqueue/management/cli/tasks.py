"""`list`, `show`, `why` and `enqueue`: the matching tasks, one task, and a new one."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import Any

from django.core.management.base import CommandError

from taskqueue.core.priorities import PRIORITY_NAMES
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.definition import registry
from taskqueue.declarations.options import OPTIONS
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.locking import id_of
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidTask
from taskqueue.management.cli.errors import usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import ID, PERSON, argument, person_of, subcommand
from taskqueue.management.cli.values import (
    CALL,
    FILTER_FLAGS,
    STRAY,
    VALUES,
    call_of,
    duration,
    filter_of,
    has_filters,
    options_flag,
    options_of,
    point_in_time,
    whole_number,
)
from taskqueue.models import Task, Workflow
from taskqueue.models.task import Route
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.task import TaskSummary, task_as, task_columns
from taskqueue.monitoring.read_models.task_history import task_history
from taskqueue.monitoring.searching.finding import Page, find
from taskqueue.monitoring.searching.orders import is_cursor
from taskqueue.monitoring.searching.sorting import (
    MOST_SORTED,
    SORTINGS,
    Sorting,
    SortKey,
    find_sorted,
)
from taskqueue.monitoring.timeline import timeline_of
from taskqueue.monitoring.why import why as reasons_why
from taskqueue.monitoring.why import why_workflow
from taskqueue.results import TaskResult
from taskqueue.results.by_hand import enqueue_by_hand
from taskqueue.results.reading import row_of

MOST = 1000
# The most pages of the admin that a search may read.
PAGES = 20
COLUMNS = (
    "id", "name", "status", "queue_name", "priority", "attempts", "run_after", "error_class",
)  # fmt: skip
TIMELINE = ("at", "title", "took_seconds", "who", "error_class", "detail")
# Fields that the text leaves out, because the attempts and the status show them.
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
    argument(
        "--sort", choices=SORTINGS, metavar="KEY",
        help=f"{', '.join(SortKey)}; `--sort=-priority`: from the other end; default: the newest "
        f"first. By due, run_time, priority and name at most {MOST_SORTED:,} of them are sorted",
    ),
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
    sorting = Sorting.of(flags.sort) if flags.sort else None
    rows, last = _found(which, sorting, limit=flags.limit, cursor=flags.cursor or "")
    summaries = [task_as(TaskSummary, task, COMMAND_LINE) for task in rows]
    if output.is_json and flags.cursor is not None:
        output.sheet({"tasks": summaries, "next": last.older or None})
        return
    output.models(summaries, COLUMNS)
    if last.searched_to is not None and last.older:
        searched_to = f"{last.searched_to:%Y-%m-%d %H:%M} UTC"
        output.note(f"Searched back to {searched_to}. Continue: --cursor {last.older}")
    elif last.sorted_among is not None:
        output.note(
            f"Only {last.sorted_among} of the matching tasks are sorted: narrow the search."
        )
    elif last.older:
        output.note(f"More tasks match: --cursor {last.older}")


def _found(
    which: TaskFilter, sorting: Sorting | None, *, limit: int, cursor: str
) -> tuple[list[Task], Page]:
    """Return the tasks, and the last page that was read for them."""
    rows = Task.objects.using(database_alias()).only(*task_columns(TaskSummary))
    if sorting is not None:
        page = find_sorted(which, sorting, tasks=rows, before=cursor, limit=limit)
        return list(page.tasks), page
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
    argument(
        "--timeline",
        action="store_true",
        help="only its history, oldest first; the last row is its state now, since that time",
    ),
    example="show 01a2022f-c607-74e3-a122-9f8b03c681f8 --timeline",
)
def show(flags: Namespace, output: Output) -> None:
    task = row_of(id_of(flags.id))
    if flags.timeline:
        output.models(timeline_of(task, COMMAND_LINE), TIMELINE)
        return
    needless = IN_ATTEMPTS if task.route == Route.APART else (*IN_ATTEMPTS, *OF_SEVERAL)
    if task.limits is None:
        needless = (*needless, "cost")
    output.sheet(task_history(task, COMMAND_LINE), without=needless)


@subcommand(
    "why",
    "what keeps a task from running, who holds it, or how it ended; or a workflow from moving on",
    ID,
    example="why 01a2022f-c607-74e3-a122-9f8b03c681f8",
)
def why(flags: Namespace, output: Output) -> None:
    task_id = id_of(flags.id)
    workflow = Workflow.objects.using(database_alias()).filter(id=task_id).first()
    if workflow is not None:
        reasons = why_workflow(workflow)
        about = {name: getattr(workflow, name) for name in ("id", "name", "status")}
        heading = f"{workflow.id}  {workflow.name}  {workflow.status}  workflow"
    else:
        task = row_of(task_id)
        reasons = reasons_why(task)
        about = {name: getattr(task, name) for name in ("id", "name", "status", "queue_name")}
        heading = f"{task.id}  {task.name}  {task.status}  queue {task.queue_name}"
    lines = [heading, *(f"  {reason.sentence}" for reason in reasons)]
    output.say(
        (line.replace("\n", " ") for line in lines),
        {**about, "reasons": [reason.as_dict() for reason in reasons]},
    )


# Options that have their own flag.
BY_FLAG = ("queue_name", "priority", "run_after", "unique_key")


@subcommand(
    "enqueue",
    "one task of a definition, by its name",
    argument("name", metavar="NAME", help="of the definition, such as shop.tasks.send"),
    STRAY,
    *CALL,
    argument("--queue", dest="queue_name", metavar="QUEUE", help=OPTIONS["queue_name"].help),
    argument(
        "--priority",
        help=f"{OPTIONS['priority'].help} Or one of {', '.join(PRIORITY_NAMES)}.",
    ),
    point_in_time(),
    argument("--unique-key", help=OPTIONS["unique_key"].help),
    options_flag(
        "--set",
        f"any other option of `.using()`, such as max_attempts=5 or timeout=30s; {VALUES}",
    ),
    argument(
        "--wait", type=duration, metavar="DURATION",
        help="wait this long for it to finish; exits with 1 if it has not succeeded by then",
    ),
    *PERSON,
    example="enqueue shop.tasks.send_receipt --args '[42]' --wait 30s",
)  # fmt: skip
def enqueue(flags: Namespace, output: Output) -> None:
    result = _enqueued(flags)
    is_late = False
    try:
        if flags.wait is not None:
            result.wait(flags.wait)
    except TimeoutError:
        result.refresh()
        is_late = True
    finally:
        # Also if the waiting was interrupted: the task stays enqueued.
        output.say(_told(result), _row(result))
    if is_late:
        raise CommandError(f"Task {result.id} is {result.status}: it has not finished in time.")
    if flags.wait is not None and result.status != TaskStatus.SUCCEEDED:
        raise CommandError(f"Task {result.id} has {_end(result).rstrip('.')}.")


def _enqueued(flags: Namespace) -> TaskResult[Any]:
    """Enqueue with the options of the flags; other options are those of the definition."""
    definition = registry.get(flags.name).using(**options_of(flags, "--set", BY_FLAG))
    call = {"args": [], "kwargs": {}, **call_of(flags)}
    try:
        result: TaskResult[Any] = enqueue_by_hand(definition, **call, **person_of(flags))
    except ArgumentsDoNotBind as error:
        raise usage_error(str(error)) from None
    except TypeError as error:  # From the value of an option.
        raise InvalidTask(str(error)) from None
    return result


def _row(result: TaskResult[Any]) -> dict[str, Any]:
    last = result.errors[-1] if result.is_finished and result.errors else None
    return {
        **{name: getattr(result, name) for name in ("id", "name", "status", "created", "updated")},
        "return_value": result.return_value if result.status == TaskStatus.SUCCEEDED else None,
        "error_class": last and last.exception_class_path,
        "error_message": last and last.message,
    }


def _told(result: TaskResult[Any]) -> str:
    if result.is_finished:
        return f"{result.id}  {_end(result)}"
    if result.created:
        return f"{result.id}  enqueued: {result.status}"
    done = "changed" if result.updated else "nothing enqueued"
    return f"{result.id}  {done}: this task holds the unique key, and is {result.status}"


def _end(result: TaskResult[Any]) -> str:
    if result.status == TaskStatus.CANCELLED:
        by = f" by {result.cancelled_by}" if result.cancelled_by else ""
        reason = f": {' '.join(result.cancel_reason.split())}" if result.cancel_reason else ""
        return f"cancelled{by}{reason}"
    if result.status == TaskStatus.SUCCEEDED or not result.errors:
        return str(result.status)
    last = result.errors[-1]
    return f"{result.status} with {last.exception_class_path}: {' '.join(last.message.split())}"
