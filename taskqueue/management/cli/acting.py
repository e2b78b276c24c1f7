"""A subcommand for each verb on tasks, made from the table of verbs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from taskqueue.engine.control.mutable_options import check_changes
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.exceptions import InvalidArguments
from taskqueue.management.cli.base import Subcommand, add_person, usage_error
from taskqueue.management.cli.json_values import json_list, json_object
from taskqueue.management.cli.options import options_of, typed_option
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import act, add_selection
from taskqueue.management.cli.stopping import STOP
from taskqueue.management.cli.times import duration, moment

EXAMPLES = {
    "retry": "retry --query 'status:failed error:SMTPException' --dry-run",
    "delete": "delete --query 'status:failed name:shop.*' --dry-run",
}


@dataclass(frozen=True, kw_only=True)
class Flags:
    """The flags for one kind of parameter."""

    add: Callable[[ArgumentParser], None]
    read: Callable[[Namespace], Any]


def _add_moment(parser: ArgumentParser) -> None:
    time = parser.add_mutually_exclusive_group(required=True)
    time.add_argument("--at", type=moment, help="a time such as 2026-03-01T12:00+00:00")
    time.add_argument("--in", type=duration, dest="at", help="a duration such as 10m")


def _add_changes(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", type=typed_option, required=True, metavar="OPTION=VALUE",
        help="such as priority=5, timeout=30s, queue_name=mail or worker_names='[\"w1\"]'; null "
        "stands for the setting, or for none; priority and queue_name always have a value",
    )  # fmt: skip


def _changes(flags: Namespace) -> Any:
    changes = options_of(flags.set, flag="--set")
    check_changes(changes)  # What no task can have is refused before it is tried on any.
    return changes


KINDS = {
    "moment": Flags(add=_add_moment, read=lambda flags: flags.at),
    "changes": Flags(add=_add_changes, read=_changes),
}
"""By the kind of the parameter."""


def _subcommand(verb: TaskVerb) -> Subcommand:
    """The subcommand that is made from a row of the table alone."""

    def add_arguments(parser: ArgumentParser) -> None:
        add_selection(parser)
        for parameter in verb.parameters:
            KINDS[parameter.kind].add(parser)
        if verb is TASK_VERBS["retry"]:
            _add_other_arguments(parser)
        add_person(parser)

    def run(flags: Namespace, output: Output) -> None:
        arguments = {each.name: KINDS[each.kind].read(flags) for each in verb.parameters}
        one = _retry_with(flags) if verb is TASK_VERBS["retry"] else None
        act(flags, output, verb, one=one, arguments=arguments)

    return Subcommand(
        name=verb.name.replace("_", "-"),
        help=verb.help,
        add_arguments=add_arguments,
        run=run,
        example=EXAMPLES.get(verb.name, ""),
    )


def _add_other_arguments(parser: ArgumentParser) -> None:
    # Django keeps `args` for itself.
    parser.add_argument(
        "--args", type=json_list, dest="new_args", help="a JSON list, in place of the old ones"
    )
    parser.add_argument(
        "--kwargs", type=json_object, dest="new_kwargs", help="a JSON object, likewise"
    )


def _retry_with(flags: Namespace) -> Callable[..., Any] | None:
    """Retry one task with the arguments of the flags; None where they give none."""
    if flags.new_args is None and flags.new_kwargs is None:
        return None
    if len(flags.ids) != 1:
        raise usage_error("--args and --kwargs are for one task, given by its id.")

    def retry_with(task_id: Any, **who: Any) -> Any:
        retrying = partial(TASK_VERBS["retry_with"].act, args=flags.new_args)
        try:
            return retrying(task_id, kwargs=flags.new_kwargs, **who)
        except InvalidArguments as error:  # No task can have them.
            raise usage_error(str(error)) from None

    return retry_with


ACTING = tuple(
    STOP if verb.name == "stop" else _subcommand(verb)
    for verb in TASK_VERBS.values()
    if verb.for_many
)
"""In the order of the table; `stop` is for workers too."""
