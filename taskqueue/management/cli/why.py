"""`why`: what keeps a task from running, who holds it, or how it ended."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, without_controls
from taskqueue.monitoring.why import why
from taskqueue.results import identifier_of
from taskqueue.results.reading import row_of


def _add_why(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def _why(flags: Namespace, output: Output) -> None:
    task = row_of(identifier_of(flags.id))
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
