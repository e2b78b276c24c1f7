"""`schedules …`: look at schedules, make, change and run them; an action a subparser."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser

from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.schedules.acting import DELETE, PAUSE, RESUME, RUN
from taskqueue.management.cli.schedules.editing import CREATE, EDIT
from taskqueue.management.cli.schedules.history import HISTORY
from taskqueue.management.cli.schedules.listing import LIST
from taskqueue.management.cli.schedules.previewing import PREVIEW
from taskqueue.management.cli.schedules.showing import SHOW
from taskqueue.management.cli.schedules.syncing import SYNC

ACTIONS = (LIST, SHOW, CREATE, EDIT, PAUSE, RESUME, RUN, DELETE, PREVIEW, HISTORY, SYNC)


def _add_actions(parser: ArgumentParser) -> None:
    chosen = parser.add_subparsers(dest="action", metavar="action", help="default: list")
    for action in ACTIONS:
        own = chosen.add_parser(action.name, help=action.help, description=action.help)
        action.add_arguments(own)
        # Without a default of its own: it would undo a --format that stands before the action.
        own.add_argument("--format", choices=("text", "json"), default=SUPPRESS)
        # The last to be set wins, and that is the inner parser.
        own.set_defaults(run=action.run)


SCHEDULES = Subcommand(
    name="schedules",
    help="look at schedules, make, change and run them",
    add_arguments=_add_actions,
    run=LIST.run,
)

__all__ = ["ACTIONS", "SCHEDULES"]
