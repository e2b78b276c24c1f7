"""`groups …`: the groups of collected events, and enqueueing them at once."""

from __future__ import annotations

from argparse import Namespace

from taskqueue.core.naming import counted
from taskqueue.engine.verbs import GROUP_VERBS
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    PERSON,
    Subcommand,
    actions_of,
    argument,
    not_empty,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import whole_number
from taskqueue.monitoring.read_models.group import read_groups, shown_batch

MOST = 1000
COLUMNS = ("name", "group", "events", "bytes", "oldest_at", "newest_at")
FIRE = GROUP_VERBS["fire"]


@subcommand(
    "list",
    "the groups that have events, with how many wait",
    argument("--name", type=not_empty, metavar="NAME", help="only those of this task"),
    argument("--limit", type=whole_number(MOST), default=100, help=f"at most {MOST}; default: 100"),
    example="groups list --name shop.tasks.digest",
)
def listed(flags: Namespace, output: Output) -> None:
    given = vars(flags)
    found = read_groups(name=given.get("name") or "", limit=given.get("limit", 100))
    output.models(found, COLUMNS)


@subcommand(
    "fire",
    FIRE.help,
    argument("name", metavar="NAME", help="the task, such as shop.tasks.digest"),
    argument("--group", default="", metavar="GROUP", help="default: the group without a name"),
    *PERSON,
    example="groups fire shop.tasks.digest --group user:42",
)
def fire(flags: Namespace, output: Output) -> None:
    fired = FIRE.act(flags.name, group=flags.group, **person_of(flags))
    shown = [shown_batch(batch) for batch in fired]
    output.say([f"{batch.task_id}  {counted(batch.events, 'event')}" for batch in shown], shown)


groups = Subcommand(
    name="groups",
    help="view and enqueue groups of collected events",
    arguments=[actions_of(listed, fire)],
    run=listed.run,
)
