"""`run-now`, `reschedule` and `update`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue.engine import control
from taskqueue.engine.control.mutable_options import check_terms
from taskqueue.management.cli.base import Subcommand, add_person
from taskqueue.management.cli.options import options_of, typed_option
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.selection import act, add_selection
from taskqueue.management.cli.times import duration, moment


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
        "--set", action="append", type=typed_option, required=True, metavar="OPTION=VALUE",
        help="such as priority=5, timeout=30s, queue_name=mail or worker_names='[\"w1\"]'; null "
        "stands for the setting, or for none; priority and queue_name always have a value",
    )  # fmt: skip
    add_person(parser)


def _update(flags: Namespace, output: Output) -> None:
    changes = options_of(flags.set, flag="--set")
    check_terms(changes)  # What no task can have is refused before it is tried on any.
    act(
        flags,
        output,
        verb="update",
        one=control.update,
        many=control.update_many,
        terms={"changes": changes},
    )


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
