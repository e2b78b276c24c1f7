"""`operations list`, `show` and `cancel`: actions on many tasks in the background."""

from __future__ import annotations

from argparse import Namespace

from taskqueue import control
from taskqueue.engine.verbs import OPERATION_VERBS
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    ID,
    PERSON,
    Subcommand,
    actions_of,
    person_of,
    subcommand,
)
from taskqueue.monitoring.read_models.base import EVERYTHING
from taskqueue.monitoring.read_models.operation import operation_details, shown_operation

MOST = 100
COLUMNS = ("id", "verb", "status", "done", "expected", "requested_by", "query", "created_at")
CANCEL = OPERATION_VERBS["cancel"]


@subcommand("list", "the newest operations")
def listed(flags: Namespace, output: Output) -> None:
    output.models(
        [shown_operation(row, EVERYTHING) for row in control.operations()[:MOST]], COLUMNS
    )


@subcommand("show", "one operation, with its progress", ID)
def show(flags: Namespace, output: Output) -> None:
    output.sheet(operation_details(control.get_operation(flags.id), EVERYTHING))


@subcommand("cancel", CANCEL.help, ID, *PERSON)
def cancel(flags: Namespace, output: Output) -> None:
    operation = CANCEL.act(flags.id, **person_of(flags))
    output.say(f"{operation.id}  {CANCEL.done}", shown_operation(operation, EVERYTHING))


operations = Subcommand(
    name="operations",
    help="view and cancel actions on many tasks in the background",
    arguments=[actions_of(listed, show, cancel)],
    run=listed.run,
)
