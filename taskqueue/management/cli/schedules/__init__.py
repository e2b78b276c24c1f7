"""`schedules …`: view, create, change and run schedules, each action by its own subparser."""

from __future__ import annotations

from functools import partial

from taskqueue.management.cli.base import Subcommand, add_actions
from taskqueue.management.cli.schedules.acting import DELETE, PAUSE, RESUME, RUN
from taskqueue.management.cli.schedules.editing import CREATE, EDIT
from taskqueue.management.cli.schedules.previewing import PREVIEW
from taskqueue.management.cli.schedules.showing import HISTORY, LIST, SHOW
from taskqueue.management.cli.schedules.syncing import SYNC

ACTIONS = (LIST, SHOW, CREATE, EDIT, PAUSE, RESUME, RUN, DELETE, PREVIEW, HISTORY, SYNC)


SCHEDULES = Subcommand(
    name="schedules",
    help="view, create, change and run schedules",
    add_arguments=partial(add_actions, actions=ACTIONS),
    run=LIST.run,
)

__all__ = ["ACTIONS", "SCHEDULES"]
