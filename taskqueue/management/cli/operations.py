"""`operations list`, `show` and `cancel`: what is done to many tasks in the background."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace

from taskqueue import control
from taskqueue.management.cli.base import Subcommand, add_person, person_of
from taskqueue.management.cli.output import Output
from taskqueue.monitoring.read_models.base import EVERYTHING
from taskqueue.monitoring.read_models.operation import operation_details, shown_operation

MOST = 100
COLUMNS = ("id", "verb", "status", "done", "expected", "requested_by", "query", "created_at")


def _add_nothing(parser: ArgumentParser) -> None:
    """It takes no flags of its own."""


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
    operation = control.cancel_operation(flags.id, **person_of(flags))
    output.say(
        f"{operation.id}  cancelled; completed changes are kept",
        shown_operation(operation, EVERYTHING),
    )


LIST = Subcommand(name="list", help="the newest of them", add_arguments=_add_nothing, run=_list)
SHOW = Subcommand(name="show", help="one, with its progress", add_arguments=_add_id, run=_show)
CANCEL = Subcommand(
    name="cancel",
    help="call one off; what was done stays done",
    add_arguments=_add_cancel,
    run=_cancel,
)


def _add_actions(parser: ArgumentParser) -> None:
    chosen = parser.add_subparsers(dest="action", metavar="action", help="default: list")
    for action in (LIST, SHOW, CANCEL):
        own = chosen.add_parser(action.name, help=action.help, description=action.help)
        action.add_arguments(own)
        # Without a default of its own: it would undo a --format that stands before the action.
        own.add_argument("--format", choices=("text", "json"), default=SUPPRESS)
        own.set_defaults(run=action.run)


OPERATIONS = Subcommand(
    name="operations",
    help="look at what is done to many tasks in the background, and call it off",
    add_arguments=_add_actions,
    run=LIST.run,
)
