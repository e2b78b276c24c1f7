"""`operations list`, `show` and `cancel`: what is done to many tasks in the background."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace
from typing import Any

from taskqueue import control
from taskqueue.engine.operations import held_count
from taskqueue.management.cli.base import Subcommand, add_person, person_of
from taskqueue.management.cli.output import Output
from taskqueue.models import Operation

MOST = 100
COLUMNS = ("id", "verb", "status", "done", "expected", "by", "query", "created_at")


def _add_nothing(parser: ArgumentParser) -> None:
    """It takes no flags of its own."""


def _add_id(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID")


def _add_cancel(parser: ArgumentParser) -> None:
    _add_id(parser)
    add_person(parser)


def _list(flags: Namespace, output: Output) -> None:
    output.table([_row(each) for each in control.operations()[:MOST]], COLUMNS)


def _show(flags: Namespace, output: Output) -> None:
    operation = control.get_operation(flags.id)
    held = held_count(operation) if operation.finished_at is None else 0
    output.sheet(
        {
            **_row(operation),
            "refused": operation.matched - operation.done - held,
            "held": held,
            "reason": operation.reason,
            "arguments": operation.arguments,
            "error": operation.error,
        }
    )


def _cancel(flags: Namespace, output: Output) -> None:
    operation = control.cancel_operation(flags.id, **person_of(flags))
    output.say(f"{operation.id}  cancelled; what was done stays done", _row(operation))


def _row(operation: Operation) -> dict[str, Any]:
    return {
        "id": str(operation.id),
        "verb": operation.verb,
        "status": operation.status,
        "query": operation.query,
        "expected": operation.expected,
        "matched": operation.matched,
        "done": operation.done,
        "by": operation.requested_by,
        "created_at": operation.created_at,
        "started_at": operation.started_at,
        "progressed_at": operation.progressed_at,
        "finished_at": operation.finished_at,
    }


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
