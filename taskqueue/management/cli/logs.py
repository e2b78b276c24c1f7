"""`logs`: print the log lines of a task, and follow them."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator

from django.db import InterfaceError, OperationalError

from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.locking import id_of
from taskqueue.engine.reader_outages import Outage
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import ID, argument, subcommand
from taskqueue.management.cli.values import whole_number
from taskqueue.monitoring.following import LEVELS, LinePage, line_page
from taskqueue.monitoring.read_models.attempt import ShownLogLine
from taskqueue.monitoring.read_models.base import json_form
from taskqueue.results.handle import growing_pauses

PAGE = 1000
LARGEST_ATTEMPT, LARGEST_ID = 2**31 - 1, 2**63 - 1


@subcommand(
    "logs",
    "the log lines of a task; with --follow also those to come, until it has finished",
    ID,
    argument("--follow", "-f", action="store_true", help="wait for further lines"),
    argument("--level", choices=list(LEVELS), help="only lines of this level or above"),
    argument("--attempt", type=whole_number(LARGEST_ATTEMPT), help="only lines of this attempt"),
    argument(
        "--after", type=whole_number(LARGEST_ID, least=0), default=0, metavar="LINE",
        help="only lines after the one of this id",
    ),
    example="logs 01a2022f-c607-74e3-a122-9f8b03c681f8 --follow --level warning",
)  # fmt: skip
def logs(flags: Namespace, output: Output) -> None:
    if output.is_json and not flags.follow:
        output.say("", [line for page in _pages(flags, output.note) for line in page.results])
        return
    for page in _pages(flags, output.note):
        for line in page.results:
            if output.is_json:
                output.line(json_form(line))
            else:
                output.say(_text(line))
        # Lines can be read as they come, also through a pipe.
        output.finish()


def _pages(flags: Namespace, note: Callable[[str], object]) -> Iterator[LinePage]:
    """Yield pages of lines until the last; with --follow until the task has finished."""
    task_id, after = id_of(flags.id), flags.after
    pauses, outage = growing_pauses(None), Outage(note)
    has_begun = False
    while True:
        try:
            page = line_page(
                task_id, after=after, limit=PAGE, level=flags.level, attempt=flags.attempt
            )
        except (OperationalError, InterfaceError) as error:
            if not (flags.follow and has_begun):
                raise
            time.sleep(outage.wait_after(project_connection(), error))
            continue
        outage.is_over(after)
        has_begun = True
        yield page
        after = page.after
        if page.has_more:
            continue
        if page.is_complete or not flags.follow:
            return
        if page.results:
            pauses = growing_pauses(None)
        time.sleep(next(pauses))


def _text(line: ShownLogLine) -> str:
    logger = f"{line.logger}: " if line.logger else ""
    at = line.logged_at.isoformat(" ", "milliseconds")
    return f"{at}  {line.attempt}  {line.level_name:<8}  {logger}{line.message}"
