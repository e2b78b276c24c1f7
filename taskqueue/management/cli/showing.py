"""`show` and `why`: one task with its history, and why it has its status."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue.engine.control.locking import id_of
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, without_controls
from taskqueue.models.task import Route
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.task import task_history
from taskqueue.monitoring.why import why
from taskqueue.results.reading import row_of

IN_ATTEMPTS = ("running", "errors", "can", "is_finished")
"""Fields that the text leaves out, since the attempts and the status say it."""
OF_SEVERAL = ("workers", "broadcast", "open_slots", "running_leases", "successes")
"""Fields that matter only for tasks of several or named workers."""


def _add_show(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def _show(flags: Namespace, output: Output) -> None:
    task = row_of(id_of(flags.id))
    is_ordinary = task.route != Route.APART
    output.sheet(
        task_history(task, COMMAND_LINE),
        without=(*IN_ATTEMPTS, *(OF_SEVERAL if is_ordinary else ())),
    )


SHOW = Subcommand(
    name="show",
    help="one task, with its attempts and its audit entries",
    add_arguments=_add_show,
    run=_show,
    example="show 01a2022f-c607-74e3-a122-9f8b03c681f8 --format json",
)


def _add_why(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def _why(flags: Namespace, output: Output) -> None:
    task = row_of(id_of(flags.id))
    reasons = why(task)
    heading = f"{task.id}  {task.name}  {task.status}  queue {task.queue_name}"
    lines = [heading, *(f"  {reason.sentence}" for reason in reasons)]
    output.say(
        "\n".join(without_controls(" ".join(line.split("\n"))) for line in lines),
        {
            "id": task.id,
            "name": task.name,
            "status": task.status,
            "queue_name": task.queue_name,
            "reasons": [reason.as_dict() for reason in reasons],
        },
    )


WHY = Subcommand(
    name="why",
    help="what keeps a task from running, who holds it, or how it ended",
    add_arguments=_add_why,
    run=_why,
    example="why 01a2022f-c607-74e3-a122-9f8b03c681f8",
)
