"""`run-now`, `reschedule` and `update`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from contextlib import suppress
from typing import Any

from taskqueue.engine import control
from taskqueue.engine.control.terms import check_terms
from taskqueue.management.cli.base import Subcommand, add_person, usage_error
from taskqueue.management.cli.json_values import json_value
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import act, add_selection
from taskqueue.management.cli.times import duration, moment
from taskqueue.option_values import DURATIONS, MOMENTS


def _add_run_now(parser: ArgumentParser) -> None:
    add_selection(parser)
    add_person(parser)


def _run_now(flags: Namespace, output: Output) -> None:
    act(flags, output, verb="run_now", one=control.run_now, many=control.run_now_many)


def _add_reschedule(parser: ArgumentParser) -> None:
    add_selection(parser)
    time = parser.add_mutually_exclusive_group(required=True)
    time.add_argument("--at", type=moment, help="a time such as 2026-03-01T12:00+00:00")
    time.add_argument("--in", type=duration, dest="at", help="a duration such as 10m")
    add_person(parser)


def _reschedule(flags: Namespace, output: Output) -> None:
    act(
        flags,
        output,
        verb="reschedule",
        one=control.reschedule,
        many=control.reschedule_many,
        terms={"run_after": flags.at},
    )


def _add_update(parser: ArgumentParser) -> None:
    add_selection(parser)
    parser.add_argument(
        "--set", action="append", type=change, required=True, metavar="OPTION=VALUE",
        help="such as priority=5, queue_name=mail or worker_names='[\"w1\"]'; null stands for "
        "the setting, or for none, but for priority and queue_name, which always have a value",
    )  # fmt: skip
    add_person(parser)


def _update(flags: Namespace, output: Output) -> None:
    changes = changes_of(flags)
    check_terms(changes)  # What no task can have is refused before it is tried on any.
    act(
        flags,
        output,
        verb="update",
        one=control.update,
        many=control.update_many,
        terms={"changes": changes},
    )


def changes_of(flags: Namespace) -> dict[str, Any]:
    """What `--set` says. Raises CommandError where it says something twice."""
    counted = Counter(name for name, _ in flags.set)
    if twice := sorted(name for name, times in counted.items() if times > 1):
        raise usage_error(f"--set says {', '.join(twice)} twice.")
    return dict(flags.set)


def change(text: str) -> tuple[str, Any]:
    """A value is JSON, a duration such as 5m for what takes one, or text as it stands."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ArgumentTypeError(f"{text!r} must be OPTION=VALUE")
    try:
        return name, json_value(value)
    except ValueError:
        return name, _typed(name, value)


def _typed(name: str, text: str) -> Any:
    if name in DURATIONS or name in MOMENTS:
        with suppress(ArgumentTypeError):
            return duration(text)
    if name in MOMENTS:
        with suppress(ArgumentTypeError):
            return moment(text)
    return text


RUN_NOW = Subcommand(
    name="run-now",
    help="make tasks ready that wait for their time",
    add_arguments=_add_run_now,
    run=_run_now,
)
RESCHEDULE = Subcommand(
    name="reschedule",
    help="give tasks that wait another time",
    add_arguments=_add_reschedule,
    run=_reschedule,
)
UPDATE = Subcommand(
    name="update",
    help="change the terms of tasks that have not finished",
    add_arguments=_add_update,
    run=_update,
)
