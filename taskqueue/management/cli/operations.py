"""`operations list`, `show` and `cancel`: actions on many tasks in the background."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial

from taskqueue import control
from taskqueue.engine.verbs import OPERATION_VERBS
from taskqueue.management.cli.base import Subcommand, add_actions, add_person, person_of
from taskqueue.management.cli.output import Output
from taskqueue.monitoring.read_models.base import EVERYTHING
from taskqueue.monitoring.read_models.operation import operation_details, shown_operation

MOST = 100
CANCELLING = OPERATION_VERBS["cancel"]
COLUMNS = ("id", "verb", "status", "done", "expected", "requested_by", "query", "created_at")


def _add_id(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def _add_cancel(parser: ArgumentParser) -> None:
    _add_id(parser)
    add_person(parser)


def _list(flags: Namespace, output: Output) -> None:
    operations = control.operations()[:MOST]
    output.models([shown_operation(row, EVERYTHING) for row in operations], COLUMNS)


def _show(flags: Namespace, output: Output) -> None:
    output.sheet(operation_details(control.get_operation(flags.id), EVERYTHING))


def _cancel(flags: Namespace, output: Output) -> None:
    operation = CANCELLING.act(flags.id, **person_of(flags))
    output.say(
        f"{operation.id}  {CANCELLING.done}",
        shown_operation(operation, EVERYTHING),
    )


LIST = Subcommand(
    name="list", help="the newest operations", add_arguments=lambda parser: None, run=_list
)
SHOW = Subcommand(
    name="show", help="one operation, with its progress", add_arguments=_add_id, run=_show
)
CANCEL = Subcommand(
    name="cancel",
    help=CANCELLING.help,
    add_arguments=_add_cancel,
    run=_cancel,
)


OPERATIONS = Subcommand(
    name="operations",
    help="view and cancel actions on many tasks in the background",
    add_arguments=partial(add_actions, actions=(LIST, SHOW, CANCEL)),
    run=LIST.run,
)
