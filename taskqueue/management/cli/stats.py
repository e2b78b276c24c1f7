"""`stats`: tasks by status, throughput, wait times and run times."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, short, without_controls
from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.performance import NamePerformance, performance
from taskqueue.monitoring.rollups import SPANS
from taskqueue.monitoring.series import OUTCOMES, Series, series

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
    attempts = series(flags.span, queue_name=flags.queue, name=flags.name)
    # What is kept of names does not tell the queues apart.
    names = [] if flags.queue else performance(flags.span)
    if flags.name:
        names = [name for name in names if name.name == flags.name]
    names = names[: flags.names]
    if output.is_json:
        output.sheet(_document(counts, attempts, names, with_steps=flags.steps))
        return
    _tell(output, flags, counts, attempts)
    if flags.steps:
        output.say("", {})
        output.table(_steps(attempts), ("start", *OUTCOMES))
    if names:
        output.say("", {})
        output.table(list(map(_shown_name, names)), NAMES)


def _document(
    counts: dict[str, Count], attempts: Series, names: list[NamePerformance], *, with_steps: bool
) -> dict[str, Any]:
    return {
        "tasks": {status: count.value for status, count in counts.items()},
        "more_than_that": sorted(status for status, count in counts.items() if count.is_capped),
        "span": attempts.span,
        "attempts": _attempts(attempts),
        "names": names,
        **({"steps": _steps(attempts)} if with_steps else {}),
    }


def _attempts(attempts: Series) -> dict[str, Any]:
    """Durations in seconds."""
    minutes = attempts.step_seconds * len(attempts.starts) / 60
    whole = attempts.whole
    return {
        **{outcome: getattr(whole, outcome) for outcome in OUTCOMES},
        "per_minute": whole.ended / minutes,
        "wait_p50": whole.wait_p50,
        "wait_p95": whole.wait_p95,
        "run_p50": whole.run_p50,
        "run_p95": whole.run_p95,
    }


def _tell(output: Output, flags: Namespace, counts: dict[str, Count], attempts: Series) -> None:
    if flags.queue or flags.name:
        # A queue's own would read all of its tasks.
        output.say("All tasks, of all queues and names:", {})
    output.table([{status: str(count) for status, count in counts.items()}], list(counts))
    figures = _attempts(attempts)
    output.say("", {})
    output.say(
        f"Attempts of the last {attempts.span}{_whose(flags)}:"
        f" {figures['succeeded']} succeeded, {figures['failed']} failed,"
        f" {figures['lost']} lost, {figures['stopped']} stopped;"
        f" {figures['per_minute']:.3g} a minute",
        {},
    )
    if attempts.whole.ended:
        waits = f"wait p50 {short(figures['wait_p50'])}, p95 {short(figures['wait_p95'])}"
        output.say(
            f"{waits}; run p50 {short(figures['run_p50'])}, p95 {short(figures['run_p95'])}", {}
        )


def _whose(flags: Namespace) -> str:
    queue = f" on the queue {without_controls(flags.queue)}" if flags.queue else ""
    return queue + (f" of {without_controls(flags.name)}" if flags.name else "")


def _steps(attempts: Series) -> list[dict[str, Any]]:
    return [
        {"start": start, **dict(zip(OUTCOMES, step, strict=False))}
        for start, step in zip(attempts.starts, attempts.steps, strict=True)
    ]


def _shown_name(shown: NamePerformance) -> dict[str, Any]:
    has_ended = shown.run_p50 is not None
    slowest = shown.slowest_seconds if has_ended else None
    durations = (shown.wait_p50, shown.wait_p95, shown.run_p50, shown.run_p95, slowest)
    cells = (shown.name, shown.count, shown.failed, *map(short, durations))
    return dict(zip(NAMES, cells, strict=True))


STATS = Subcommand(
    name="stats",
    help="tasks by status, throughput, wait times and run times",
    add_arguments=_add_stats,
    run=_stats,
    example="stats --span day",
)
