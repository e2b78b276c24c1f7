"""`stats`: tasks by status, throughput, wait times and run times."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, short, without_controls
from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.performance import NamePerformance, performance
from taskqueue.monitoring.rollups import SPANS
from taskqueue.monitoring.series import Series, series

MOST_NAMES = 1000
NAMES = ("name", "attempts", "failed", "wait p50", "wait p95", "run p50", "run p95", "slowest")


def _add_stats(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--span", choices=sorted(SPANS, key=list(SPANS).index), default="hour",
        help="the span; default: hour",
    )  # fmt: skip
    parser.add_argument("--queue", default="", help="only attempts of this queue")
    parser.add_argument("--name", default="", help="only attempts of this definition")
    parser.add_argument(
        "--names", type=_names, default=10, metavar="N",
        help=f"show the N most frequent names; at most {MOST_NAMES}, default: 10",
    )  # fmt: skip
    parser.add_argument("--steps", action="store_true", help="show each step of the span too")


def _names(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_NAMES:
        raise ArgumentTypeError(f"must be a whole number from 0 to {MOST_NAMES}")
    return int(text)


def _stats(flags: Namespace, output: Output) -> None:
    counts = status_counts()
    found = series(flags.span, queue_name=flags.queue, name=flags.name)
    # What is kept of names does not tell the queues apart.
    names = [] if flags.queue else performance(flags.span)
    if flags.name:
        names = [each for each in names if each.name == flags.name]
    names = names[: flags.names]
    if output.is_json:
        output.sheet(_document(counts, found, names, with_steps=flags.steps))
        return
    _tell(output, flags, counts, found)
    if flags.steps:
        output.say("", {})
        output.table(_steps(found), ("start", "succeeded", "failed", "lost", "stopped"))
    if names:
        output.say("", {})
        output.table(list(map(_shown_name, names)), NAMES)


def _document(
    counts: dict[str, Count], found: Series, names: list[NamePerformance], *, with_steps: bool
) -> dict[str, Any]:
    return {
        "tasks": {status: count.value for status, count in counts.items()},
        "more_than_that": sorted(status for status, count in counts.items() if count.is_capped),
        "span": found.span,
        "attempts": _attempts(found),
        "names": names,
        **({"steps": _steps(found)} if with_steps else {}),
    }


def _attempts(found: Series) -> dict[str, Any]:
    """Durations in seconds."""
    minutes = found.step_seconds * len(found.starts) / 60
    return {
        "succeeded": found.total_succeeded,
        "failed": found.total_failed,
        "lost": found.total_lost,
        "stopped": found.total_stopped,
        "per_minute": found.total / minutes,
        "wait_p50": found.overall_wait_p50,
        "wait_p95": found.overall_wait_p95,
        "run_p50": found.overall_run_p50,
        "run_p95": found.overall_run_p95,
    }


def _tell(output: Output, flags: Namespace, counts: dict[str, Count], found: Series) -> None:
    if flags.queue or flags.name:
        # A queue's own would read all of its tasks.
        output.say("All tasks, of all queues and names:", {})
    output.table([{status: str(count) for status, count in counts.items()}], list(counts))
    figures = _attempts(found)
    output.say("", {})
    output.say(
        f"Attempts of the last {found.span}{_whose(flags)}: {found.total_succeeded} succeeded,"
        f" {found.total_failed} failed, {found.total_lost} lost, {found.total_stopped} stopped;"
        f" {figures['per_minute']:.3g} a minute",
        {},
    )
    if found.total:
        waits = f"wait p50 {short(figures['wait_p50'])}, p95 {short(figures['wait_p95'])}"
        output.say(
            f"{waits}; run p50 {short(figures['run_p50'])}, p95 {short(figures['run_p95'])}", {}
        )


def _whose(flags: Namespace) -> str:
    queue = f" on the queue {without_controls(flags.queue)}" if flags.queue else ""
    return queue + (f" of {without_controls(flags.name)}" if flags.name else "")


def _steps(found: Series) -> list[dict[str, Any]]:
    columns = zip(
        found.starts, found.succeeded, found.failed, found.lost, found.stopped, strict=True
    )
    return [
        dict(zip(("start", "succeeded", "failed", "lost", "stopped"), each, strict=True))
        for each in columns
    ]


def _shown_name(each: NamePerformance) -> dict[str, Any]:
    has_ended = each.run_p50 is not None
    slowest = each.slowest_seconds if has_ended else None
    durations = (each.wait_p50, each.wait_p95, each.run_p50, each.run_p95, slowest)
    cells = (each.name, each.count, each.failed, *map(short, durations))
    return dict(zip(NAMES, cells, strict=True))


STATS = Subcommand(
    name="stats",
    help="tasks by status, throughput, wait times and run times",
    add_arguments=_add_stats,
    run=_stats,
    example="stats --span day",
)
