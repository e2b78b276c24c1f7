"""`top`: a live overview in the terminal."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.top.frame import frame
from taskqueue.management.cli.top.live import document, stream, watch
from taskqueue.monitoring.overview import overview

SHORTEST, LONGEST = 0.2, 3600.0
DUMB = "dumb"
"""The TERM of terminals without escape sequences, as in some editors."""
COLUMNS = 120
"""The width of a frame without a terminal."""


def _add_top(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--interval", type=_interval, default=2.0, metavar="SECONDS",
        help="time between refreshes; default: 2",
    )  # fmt: skip
    parser.add_argument(
        "--once", action="store_true",
        help="print once, then exit; text without a terminal, or to a dumb one, does so too. JSON "
        "continues, one document per line",
    )  # fmt: skip


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not SHORTEST <= seconds <= LONGEST:
        raise ArgumentTypeError(f"must be from {SHORTEST:g} to {LONGEST:g} seconds")
    return seconds


def _top(flags: Namespace, output: Output) -> None:
    connection = project_connection()
    title = f"taskqueue  {connection.settings_dict['NAME']} ({connection.vendor})  "
    if output.is_json and not flags.once:
        stream(output, interval=flags.interval)
    elif flags.once or not output.is_terminal or os.environ.get("TERM") == DUMB:
        seen = overview()
        lines = frame(seen, columns=COLUMNS, title=title)
        output.say("\n".join(line.text for line in lines), document(seen))
    else:
        watch(f"{title}q quits  ", interval=flags.interval)


TOP = Subcommand(
    name="top",
    help="live overview in the terminal: counts, queues, workers, running tasks",
    add_arguments=_add_top,
    run=_top,
    example="top --interval 1",
)
