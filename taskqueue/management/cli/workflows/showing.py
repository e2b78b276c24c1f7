"""`workflows list`, `show` and `graph`."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError, Namespace
from typing import Any
from uuid import UUID

from taskqueue.declarations.workflows.drawing import mermaid, picture_to_json, standalone_svg
from taskqueue.engine.workflows.pictures import picture_of_workflow
from taskqueue.management.cli.cells import aligned, one_line
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import ID, argument, not_empty, one_of, subcommand
from taskqueue.management.cli.values import PAST, past, whole_number
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.step import ShownStep
from taskqueue.monitoring.read_models.workflow import (
    STATUSES,
    ListedWorkflow,
    shown_workflows,
    workflow_history,
)
from taskqueue.monitoring.searching.workflows import WorkflowFilter, matching_workflows
from taskqueue.results.workflows import row_of

MOST = 1000
LIST_HEAD = ("id", "name", "status", "members", "failures", "created_at", "failed_step")
STEP_HEAD = ("step", "status", "members", "failures", "calls", "why")


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ArgumentTypeError("is not the id of a workflow") from None


def _cursor(text: str) -> UUID | None:
    """Read a cursor of the list; empty for the first page."""
    return _id(text) if text else None


def _time(flag: str, help: str) -> Any:
    return argument(
        flag, dest=f"created_{flag.strip('-')}", type=past, metavar="TIME",
        help=f"{help}, {PAST}",
    )  # fmt: skip


@subcommand(
    "list",
    "the newest workflows, without those that others run as steps",
    argument(
        "--status", action="append", dest="statuses", choices=STATUSES, default=[],
        help="may be repeated",
    ),
    argument("--name", type=not_empty, metavar="NAME", help="its name; 'shop.*': its beginning"),
    argument("--id", type=not_empty, metavar="ID", help="the beginning of its id; children too"),
    argument("--parent", type=_id, metavar="ID", help="only workflows that this one runs as steps"),
    argument("--schedule", type=not_empty, metavar="NAME", help="the schedule that enqueued it"),
    argument("--unique-key", type=not_empty, metavar="KEY", help="its unique key"),
    _time("--after", "created at or after this time"),
    _time("--before", "created before this time"),
    one_of(
        argument("--paused", action="store_true", default=None, help="only paused ones"),
        argument(
            "--not-paused", action="store_false", dest="paused", default=None,
            help="only ones that run and are not paused",
        ),
    ),
    argument("--limit", type=whole_number(MOST), default=50, help=f"at most {MOST}; default: 50"),
    argument(
        "--cursor", type=_cursor, default=SUPPRESS,
        help="continue after a list, by the cursor that it printed; '' for the first page. JSON "
        "is then: `workflows`, and `next`, the cursor of the next page",
    ),
    example="workflows list --status failed --name 'shop.*' --after 2d",
)  # fmt: skip
def listed(flags: Namespace, output: Output) -> None:
    rows = matching_workflows(_filter(flags))
    cursor = getattr(flags, "cursor", None)
    if cursor is not None:
        rows = rows.filter(id__lt=cursor)
    limit = getattr(flags, "limit", 50)
    found = list(rows[: limit + 1])
    shown = shown_workflows(found[:limit])
    following = found[limit - 1].id if len(found) > limit else None
    if output.is_json and "cursor" in flags:
        output.sheet({"workflows": shown, "next": following})
        return
    output.say(aligned([LIST_HEAD, *map(_cells, shown)]), shown)
    if following is not None:
        output.note(f"More workflows match: --cursor {following}")


def _filter(flags: Namespace) -> WorkflowFilter:
    """Return the filter for the flags; without an action there are no such flags."""
    given = vars(flags)
    name = given.get("name") or ""
    is_prefix = name.endswith("*")
    return WorkflowFilter(
        statuses=given.get("statuses") or (),
        names=[name] if name and not is_prefix else (),
        name_prefix=name.removesuffix("*") if is_prefix else "",
        schedule=given.get("schedule") or "",
        unique_key=given.get("unique_key") or "",
        id_prefix=given.get("id") or "",
        parent=given.get("parent"),
        created_after=given.get("created_after"),
        created_before=given.get("created_before"),
        is_paused=given.get("paused"),
    )


def _cells(workflow: ListedWorkflow) -> list[str]:
    is_paused = workflow.paused_at is not None and not workflow.is_finished
    return [
        str(workflow.id),
        workflow.name,
        f"{workflow.status}, paused" if is_paused else workflow.status,
        f"{workflow.ended}/{workflow.members}",
        str(workflow.failures),
        f"{workflow.created_at:%Y-%m-%d %H:%M:%S}",
        workflow.failed_step,
    ]


@subcommand(
    "show",
    "one workflow, with its steps, its children and its audit entries",
    ID,
    example="workflows show 01a2022f-c607-74e3-a122-9f8b03c681f8",
)
def show(flags: Namespace, output: Output) -> None:
    shown = workflow_history(row_of(flags.id), COMMAND_LINE)
    output.sheet(shown, without=("steps", "step_counts", "can", "is_finished"))
    if not output.is_json:
        output.say(["", *aligned([STEP_HEAD, *map(_step_cells, shown.steps)])])


def _step_cells(step: ShownStep) -> list[str]:
    error = "" if step.error is None else f"{step.error.error_class}: {step.error.message}"
    members = "?" if step.members is None else str(step.members)
    return [
        step.name,
        step.status,
        f"{step.ended}/{members}",
        str(step.failures),
        step.calls,
        one_line(error or step.reason),
    ]


@subcommand(
    "graph",
    "the graph of a workflow as it is now",
    ID,
    example="workflows graph 01a2022f-c607-74e3-a122-9f8b03c681f8 --format svg > graph.svg",
    formats=("svg", "mermaid", "json"),
)
def graph(flags: Namespace, output: Output) -> None:
    picture = picture_of_workflow(row_of(flags.id))
    text = standalone_svg(picture) if flags.format == "svg" else mermaid(picture)
    output.say(text.rstrip("\n"), picture_to_json(picture))
