"""`events`: list the feed of events, or follow it."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

from django.db import InterfaceError, OperationalError

from taskqueue.declarations.event_filters import EventFilter
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.reading import LARGEST_SEQ, MOST, FeedEvent, read, read_last
from taskqueue.engine.events.subscribing import keep_reading
from taskqueue.engine.reader_outages import Outage
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import argument, not_empty, subcommand
from taskqueue.management.cli.values import whole_number
from taskqueue.monitoring.read_models.base import json_form

# Seconds between two looks.
PAUSE = 0.25
COLUMNS = ("seq", "at", "kind", "name", "queue", "task", "worker")


@subcommand(
    "events",
    "what has happened, while anybody has subscribed to it; --follow prints what happens",
    argument("kinds", nargs="*", metavar="KIND", help="kinds or patterns, such as 'task.*'"),
    argument("--name", type=not_empty, help="a name, or a pattern with * and ?"),
    argument("--queue", type=not_empty, help="a queue, or a pattern with * and ?"),
    argument("--task", type=not_empty, metavar="ID"),
    argument("--workflow", type=not_empty, metavar="ID"),
    argument(
        "--after", type=whole_number(LARGEST_SEQ, least=0), metavar="SEQ",
        help="only events after this number; default: the last ones, with --follow from now on",
    ),
    argument(
        "--limit", type=whole_number(MOST), default=50, help=f"at most {MOST}; default: 50"
    ),
    argument(
        "--follow", "-f", action="store_true",
        help="print events as they come; with --format json, one document per line",
    ),
    example="events task.failed 'workflow.*' --queue mail --follow",
)  # fmt: skip
def events(flags: Namespace, output: Output) -> None:
    wanted = EventFilter.of(flags.kinds, **_conditions(flags))
    if flags.follow:
        _follow(wanted, flags.after, output)
        return
    connection = project_connection()
    keep_reading(connection, wanted)
    if flags.after is None:
        found = read_last(connection, wanted, limit=flags.limit)
    else:
        found = read(connection, wanted, after=flags.after, limit=flags.limit).events
    output.table([json_form(event) for event in found], COLUMNS)


def _follow(wanted: EventFilter, after: int | None, output: Output) -> None:
    connection = project_connection()
    seq = keep_reading(connection, wanted)
    seq = seq if after is None else after
    outage = Outage(output.note)
    while True:
        try:
            keep_reading(connection, wanted)
            page = read(connection, wanted, after=seq)
        except (OperationalError, InterfaceError) as error:
            time.sleep(outage.wait_after(connection, error))
            continue
        outage.is_over(seq)
        for event in page.events:
            _print(event, output)
        seq = page.next_seq
        if not page.has_more:
            time.sleep(PAUSE)


def _print(event: FeedEvent, output: Output) -> None:
    if output.is_json:
        output.line(json_form(event))
        return
    about = [str(event.task or event.workflow or ""), event.name, event.queue, event.worker]
    details = [f"{name}={value}" for name, value in event.details.items()]
    words = [str(event.seq), json_form(event.at), event.kind, *about, *details]
    output.words("  ".join(word for word in words if word))


def _conditions(flags: Namespace) -> dict[str, Any]:
    names = ("name", "queue", "task", "workflow")
    return {name: getattr(flags, name) for name in names if getattr(flags, name) is not None}
