"""`show`: one task, with its attempts and its audit entries."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.models.task import Route
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.task import task_history
from taskqueue.results import identifier_of
from taskqueue.results.reading import row_of

IN_ATTEMPTS = ("running", "errors", "can", "is_finished")
"""Fields that the text leaves out, since the attempts and the status say it."""
OF_SEVERAL = ("workers", "broadcast", "open_slots", "running_leases", "successes")
"""Fields that matter only for tasks of several or named workers."""


def _add_show(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def _show(flags: Namespace, output: Output) -> None:
    task = row_of(identifier_of(flags.id))
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
