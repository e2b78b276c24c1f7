"""`workflows enqueue`: build and enqueue a workflow."""

from __future__ import annotations

from argparse import Namespace

from django.core.management.base import CommandError

from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.declarations.workflows.graph import Graph
from taskqueue.declarations.workflows.workflow import workflows as declared
from taskqueue.exceptions import ArgumentsDoNotBind, TaskQueueError
from taskqueue.management.cli.cells import one_line
from taskqueue.management.cli.errors import TROUBLE, usage_error
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import PERSON, argument, not_empty, person_of, subcommand
from taskqueue.management.cli.values import CALL, STRAY, call_of, duration
from taskqueue.results.workflow_enqueueing import enqueue_graph_by_hand
from taskqueue.results.workflows import WorkflowRun


@subcommand(
    "enqueue",
    "one workflow, by its name",
    argument("name", metavar="NAME", help="such as shop.nightly"),
    STRAY,
    *CALL,
    argument("--unique-key", type=not_empty, help="held by one of this name until it ends"),
    argument("--deadline", type=duration, metavar="DURATION", help="it fails if it takes longer"),
    argument(
        "--wait", type=duration, metavar="DURATION",
        help="wait this long for it to finish; exits with 1 if it has not succeeded by then",
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
        # Also if the waiting was interrupted: the workflow stays enqueued.
        row = {name: getattr(run, name) for name in ("id", "name", "status", "created", "error")}
        output.say(_told(run), row)
    if is_late:
        raise CommandError(f"Workflow {run.id} is {run.status}: it has not finished in time.")
    if flags.wait is not None and run.status != WorkflowStatus.SUCCEEDED:
        raise CommandError(f"Workflow {run.id} has {run.status}.")


def _built(flags: Namespace) -> Graph:
    """Return the graph for the flags. Raises CommandError if its function raises."""
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
    except Exception as error:  # Its function is the project's code.
        said = f"{type(error).__name__}: {one_line(str(error))}"
        raise CommandError(f"{workflow.name} cannot be built of these arguments: {said}") from None


def _told(run: WorkflowRun) -> str:
    if run.is_finished:
        failure = "" if run.error is None else f" with {run.error['error_class']}"
        return f"{run.id}  {run.status}{failure}"
    if run.created:
        return f"{run.id}  enqueued: {run.status}"
    return f"{run.id}  nothing enqueued: this workflow holds the unique key, and is {run.status}"
