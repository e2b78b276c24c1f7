"""`schedules …`: view, create, change and run schedules, each action by its own subparser."""

from taskqueue.management.cli.schedules.acting import VERBS, sync
from taskqueue.management.cli.schedules.documents import export, import_
from taskqueue.management.cli.schedules.editing import copy, create, edit
from taskqueue.management.cli.schedules.showing import history, listed, preview, show
from taskqueue.management.cli.subcommand import Subcommand, actions_of

schedules = Subcommand(
    name="schedules",
    help="view, create, change and run schedules",
    arguments=[
        actions_of(
            listed, show, create, copy, edit, *VERBS, preview, history, export, import_, sync
        )
    ],
    run=listed.run,
)
