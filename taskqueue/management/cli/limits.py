"""`limits …`: view limits and override the numbers of the code; `release` a sequence."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from django.core.management.base import CommandError

from taskqueue.core.suggestions import did_you_mean
from taskqueue.declarations.limits import MOST_AT_ONCE
from taskqueue.engine.control.queue_verbs import LIMIT_VERBS
from taskqueue.engine.verbs import VERBS
from taskqueue.management.cli.acting import act_on_ids
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    NAME,
    PERSON,
    Argument,
    Subcommand,
    actions_of,
    argument,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import whole_number
from taskqueue.monitoring.read_models.base import json_form
from taskqueue.monitoring.read_models.limit import (
    keys_of,
    limit_named,
    limit_rows,
    read_limits,
    shown_limits,
)

COLUMNS = (
    "name", "per", "concurrency", "rate", "is_overridden", "running", "waiting_count",
)  # fmt: skip
KEY_COLUMNS = ("key", "running", "waiting_count", "oldest_seconds", "used")
RATE = argument(
    "--rate", metavar="RATE", help="how many start in every window, such as 100/m or 5/10s"
)
RELEASE = VERBS["task", "release"]


def places(*, least: int) -> Argument:
    """Return the flag for how many tasks run at once."""
    zero = "; with 0, all its tasks wait" if least == 0 else ""
    return argument(
        "--concurrency", type=whole_number(MOST_AT_ONCE, least=least), metavar="N",
        help=f"how many run at once{zero}",
    )  # fmt: skip


@subcommand("list", "the limits, with what runs and waits under each")
def listed(flags: Namespace, output: Output) -> None:
    output.models(read_limits(), COLUMNS)


@subcommand(
    "show",
    "one limit, with the keys that have the most tasks waiting",
    NAME,
    example="limits show stripe",
)
def show(flags: Namespace, output: Output) -> None:
    row = limit_rows().filter(name=flags.name).first()
    if row is None:
        hint = did_you_mean(flags.name, list(limit_rows().values_list("name", flat=True)[:1000]))
        raise CommandError(f"There is no limit {flags.name!r}.{hint}")
    (shown,) = shown_limits([row])
    keys = keys_of(row)
    if output.is_json:
        output.sheet({**vars(shown), "keys": keys})
        return
    output.sheet(shown)
    if keys:
        output.say("")
        output.models(keys, KEY_COLUMNS)


@subcommand(
    "set",
    LIMIT_VERBS["set"].help,
    NAME,
    places(least=0),
    RATE,
    *PERSON,
    example="limits set stripe --concurrency 5 --reason 'their incident'",
)
def override(flags: Namespace, output: Output) -> None:
    _act("set", flags, output, concurrency=flags.concurrency, rate=flags.rate)


@subcommand("reset", LIMIT_VERBS["reset"].help, NAME, *PERSON, example="limits reset stripe")
def reset(flags: Namespace, output: Output) -> None:
    _act("reset", flags, output)


def _act(name: str, flags: Namespace, output: Output, **arguments: Any) -> None:
    verb = LIMIT_VERBS[name]
    verb.act(flags.name, **arguments, **person_of(flags))
    output.say(verb.told(flags.name), json_form(limit_named(flags.name)))


limits = Subcommand(
    name="limits",
    help="view limits, and override the numbers that the code declares",
    arguments=[actions_of(listed, show, override, reset)],
    run=listed.run,
)


@subcommand(
    "release",
    RELEASE.help,
    argument("ids", nargs="+", metavar="ID", help="the id of the failed task, or of one behind it"),
    *PERSON,
    example="release 01a2022f-c607-74e3-a122-9f8b03c681f8",
)
def release(flags: Namespace, output: Output) -> None:
    act_on_ids(flags, output, "release", RELEASE.act)
