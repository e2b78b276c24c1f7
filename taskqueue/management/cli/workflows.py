"""`workflows …`: list, show, draw and enqueue workflows; a subcommand for each verb on them."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError, Namespace
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError

from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.declarations.workflows.drawing import mermaid, picture_to_json, standalone_svg
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.declarations.workflows.workflow import workflows as declared
from taskqueue.engine.workflows.pictures import picture_of_workflow
from taskqueue.engine.workflows.workflow_verbs import WORKFLOW_VERBS, WorkflowVerb
from taskqueue.exceptions import ArgumentsDoNotBind, TaskQueueError
from taskqueue.management.cli.acting import Lines, for_each
from taskqueue.management.cli.cells import aligned, one_line
from taskqueue.management.cli.errors import TROUBLE, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    ID,
    PERSON,
    Subcommand,
    actions_of,
    argument,
    not_empty,
    one_of,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import CALL, any_json, call_of, duration, past, whole_number
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.step import ShownStep
from taskqueue.monitoring.read_models.workflow import (
    STATUSES,
    ListedWorkflow,
    shown_workflows,
    workflow_history,
)
from taskqueue.monitoring.searching.workflows import WorkflowFilter, matching_workflows
from taskqueue.results.workflow_enqueueing import enqueue_graph_by_hand
from taskqueue.results.workflows import WorkflowRun, row_of

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
        help=f"{help}, such as 2026-03-01T12:00+00:00, or 2h for two hours ago",
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
    """Return the filter that the flags describe; without an action there are none."""
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


@subcommand(
    "enqueue",
    "one workflow, by its name",
    argument("name", metavar="NAME", help="such as shop.nightly"),
    *CALL,
    argument("--unique-key", type=not_empty, help="held by one of this name until it ends"),
    argument("--deadline", type=duration, metavar="DURATION", help="it fails if it takes longer"),
    argument(
        "--wait", type=duration, metavar="DURATION",
        help="wait so long for its end; exits with 1 if it does not succeed by then",
    ),
    *PERSON,
    example="""workflows enqueue shop.nightly --kwargs '{"day": "2026-11-24"}'""",
)  # fmt: skip
def enqueue(flags: Namespace, output: Output) -> None:
    run = enqueue_graph_by_hand(_built(flags), **person_of(flags))
    is_late = False
    try:
        if flags.wait is not None:
            run.wait(flags.wait)
    except TimeoutError:
        is_late = True
    finally:
        # Also if the waiting was interrupted: the workflow stays.
        row = {name: getattr(run, name) for name in ("id", "name", "status", "created", "error")}
        output.say(_told(run), row)
    if is_late:
        raise CommandError(f"Workflow {run.id} is {run.status}: it has not finished in time.")
    if flags.wait is not None and run.status != WorkflowStatus.SUCCEEDED:
        raise CommandError(f"Workflow {run.id} has {run.status}.")


def _built(flags: Namespace) -> Graph:
    """Return the graph that the flags ask for. Raises CommandError where its function raises."""
    options = {
        name: value
        for name in ("unique_key", "deadline")
        if (value := getattr(flags, name)) is not None
    }
    workflow = declared.get(flags.name).using(**options)
    call = {"args": [], "kwargs": {}, **call_of(flags)}
    try:
        return workflow.build(*call["args"], **call["kwargs"])
    except ArgumentsDoNotBind as error:
        raise usage_error(str(error)) from None
    except (TaskQueueError, *TROUBLE):
        raise
    except Exception as error:  # Its function is the project's.
        said = f"{type(error).__name__}: {one_line(str(error))}"
        raise CommandError(f"{workflow.name} cannot be built of these arguments: {said}") from None


def _told(run: WorkflowRun) -> str:
    if run.is_finished:
        failure = "" if run.error is None else f" with {run.error['error_class']}"
        return f"{run.id}  {run.status}{failure}"
    if run.created:
        return f"{run.id}  enqueued: {run.status}"
    return f"{run.id}  nothing enqueued: this workflow holds the unique key, and is {run.status}"


# The flags for the parameters of the verbs.
PARAMETERS = {
    "from_step": argument(
        "--from-step", type=not_empty, metavar="NAME",
        help="run this step and all behind it anew, whatever they did",
    ),
    "step": argument("--step", type=not_empty, metavar="NAME", required=True, help="a failed step"),
    "value": argument(
        "--value", type=any_json, metavar="JSON", required=True,
        help="""its result, such as 42 or '{"rows": 0}'""",
    ),
}  # fmt: skip


def _action(verb: WorkflowVerb) -> Subcommand:
    """Return the subcommand for a verb; each workflow that refuses it is named."""

    def attempt(key: str, given: dict[str, Any]) -> dict[str, Any]:
        is_gone = verb.act(key, **given)
        return {} if is_gone is None else {"gone": is_gone}

    def text_of(line: dict[str, Any]) -> str:
        if "error" in line:
            return f"{line['id']}  {line['error']}"
        told = verb.told(line["id"])
        return told if line.get("gone", True) else f"{told} Workers delete the rest of its tasks."

    flags_of_verb = [PARAMETERS[name] for name in verb.parameters]

    @subcommand(
        verb.name, verb.help, argument("ids", nargs="+", metavar="ID"), *flags_of_verb, *PERSON
    )
    def act(flags: Namespace, output: Output) -> None:
        def tell(lines: Lines) -> None:
            output.say(map(text_of, lines), {"action": verb.name, "workflows": lines})

        given = {name: getattr(flags, name) for name in verb.parameters} | person_of(flags)
        for_each(flags.ids, lambda key: attempt(key, given), output, key="id", tell=tell)

    return act


VERBS = [_action(verb) for verb in WORKFLOW_VERBS.values()]
workflows = Subcommand(
    name="workflows",
    help="view, draw, enqueue and change workflows",
    arguments=[actions_of(listed, show, graph, enqueue, *VERBS)],
    run=listed.run,
)
