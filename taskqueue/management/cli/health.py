"""`health`: an exit code for the probes of whoever runs the workers."""

from __future__ import annotations

import socket
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from functools import partial

from django.core.management.base import CommandError

from taskqueue.management.cli.base import Subcommand, given
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.times import duration
from taskqueue.management.cli.trouble import TROUBLE, line_of, sentence_of
from taskqueue.monitoring.bounded import NoAnswer, Question
from taskqueue.monitoring.health import DATABASE, Check, Health, Wanted, probe

LONGEST = 5.0
"""Seconds."""


def _add_health(parser: ArgumentParser) -> None:
    parser.add_argument("--worker", type=given, metavar="NAME", help="this one; default: any")
    parser.add_argument(
        "--host", nargs="?", type=given, const=socket.gethostname()[:255],
        help="one that runs on this host, or on HOST",
    )  # fmt: skip
    parser.add_argument(
        "--queue", action="append", type=given, default=[], metavar="NAME",
        help="a live worker takes tasks from it; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--max-age", type=_seconds, metavar="SECONDS",
        help="since the worker's last sign of life; default: its lease",
    )  # fmt: skip
    parser.add_argument(
        "--max-latency", type=_seconds, metavar="SECONDS",
        help="how long the oldest ready task may have waited; a paused queue's may",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=_seconds, default=LONGEST, metavar="SECONDS",
        help=f"for the database to answer; default: {LONGEST:g}",
    )  # fmt: skip


def _health(flags: Namespace, output: Output) -> None:
    wanted = Wanted(
        worker=flags.worker or "",
        host=flags.host or "",
        queues=tuple(dict.fromkeys(flags.queue)),
        max_age=flags.max_age,
        max_latency=flags.max_latency,
    )
    found = _asked(wanted, seconds=flags.timeout)
    failed = [check.detail for check in found.checks if not check.is_ok]
    if not output.is_json and failed:
        raise CommandError(" ".join(failed))
    checks = [{"name": each.name, "ok": each.is_ok, "detail": each.detail} for each in found.checks]
    output.say(found.checks[0].detail, {"status": found.status, "checks": checks})
    if failed:
        raise SystemExit(1)


def _asked(wanted: Wanted, *, seconds: float) -> Health:
    try:
        return Question(partial(_look, wanted), seconds=seconds).answer()
    except NoAnswer as error:
        return _without_database(str(error))
    except TROUBLE as error:
        return _without_database(line_of(error))


def _look(wanted: Wanted) -> Health:
    try:
        return probe(wanted)
    except TROUBLE as error:
        # Asks the database whether it has our tables, and therefore does so here.
        return _without_database(sentence_of(error))


def _without_database(detail: str) -> Health:
    return Health(checks=(Check(name=DATABASE, is_ok=False, detail=detail),))


def _seconds(text: str) -> float:
    seconds = duration(text).total_seconds()
    if not 0 < seconds < 10**6:
        raise ArgumentTypeError(f"{text!r} must be more than 0 s, and less than ten days.")
    return seconds


HEALTH = Subcommand(
    name="health",
    help="exit with 0 where workers live and take tasks, else 1; for probes",
    add_arguments=_add_health,
    run=_health,
)
