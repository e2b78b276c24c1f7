"""`tasks …`: the definitions that the code of the project declares."""

from __future__ import annotations

from argparse import Namespace

from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import NAME, Subcommand, actions_of, argument, subcommand
from taskqueue.monitoring.read_models.definition import definition_named, definitions

COLUMNS = (
    "name", "queue_name", "priority", "max_attempts", "timeout", "is_paused", "schedules",
    "summary",
)  # fmt: skip


@subcommand(
    "list",
    "the definitions, which `enqueue` takes by their names",
    argument("pattern", nargs="?", default="*", metavar="PATTERN", help="such as 'shop.*'"),
    example="tasks list 'shop.*'",
)
def listed(flags: Namespace, output: Output) -> None:
    output.models(definitions(getattr(flags, "pattern", "*")), COLUMNS)


@subcommand(
    "show", "one definition, with its options and arguments", NAME, example="tasks show shop.send"
)
def show(flags: Namespace, output: Output) -> None:
    output.sheet(definition_named(flags.name))


tasks = Subcommand(
    name="tasks",
    help="view the definitions of tasks",
    arguments=[actions_of(listed, show)],
    run=listed.run,
)
