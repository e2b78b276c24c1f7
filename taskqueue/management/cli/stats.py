"""`stats`: tasks by status, throughput, wait times and run times."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import argument, subcommand
from taskqueue.management.cli.values import whole_number
from taskqueue.monitoring.comparison import Compared, compared
from taskqueue.monitoring.counts import Count, status_counts
from taskqueue.monitoring.durations import short_duration
from taskqueue.monitoring.rollups import SPANS
from taskqueue.monitoring.series import OUTCOMES, Series, series

MOST_NAMES = 1000
DURATIONS = ("wait_p50", "wait_p95", "run_p50", "run_p95")
NAMES = (
    "name", "attempts", "failed", "wait p50", "wait p95", "run p50", "run p95", "slowest",
    "p95 change", "failed change",
)  # fmt: skip


@subcommand(
    "stats",
    "tasks by status, throughput, wait times and run times",
    argument(
        "--span", choices=sorted(SPANS, key=list(SPANS).index), default="hour",
        help="the span; default: hour",
    ),
    argument("--queue", default="", help="only attempts of this queue"),
    argument("--name", default="", help="only attempts of this definition"),
    argument(
        "--names", type=whole_number(MOST_NAMES, least=0), default=10, metavar="N",
        help=f"show the N most frequent names; at most {MOST_NAMES}, default: 10",
    ),
    argument("--steps", action="store_true", help="show each step of the span too"),
    example="stats --span day",
)  # fmt: skip
def stats(flags: Namespace, output: Output) -> None:
    counts = status_counts()
    attempts = series(flags.span, queue_name=flags.queue, name=flags.name)
    figures = _figures(attempts)
    steps = _steps(attempts) if flags.steps else []
    # Figures by name do not distinguish queues.
    names = [] if flags.queue else compared(flags.span)
    names = [each for each in names if flags.name in ("", each.name)][: flags.names]
    if output.is_json:
        document = {
            **json_of_counts(counts),
            "span": attempts.span,
            "attempts": figures,
            "names": names,
        }
        output.sheet(document | ({"steps": steps} if flags.steps else {}))
        return
    if flags.queue or flags.name:
        # Counting a queue's own tasks would read all of them.
        output.say("All tasks, of all queues and names:")
    output.table([{status: str(count) for status, count in counts.items()}], list(counts))
    whose = f" on the queue {flags.queue}" if flags.queue else ""
    whose += f" of {flags.name}" if flags.name else ""
    ends = ", ".join(f"{figures[outcome]} {outcome}" for outcome in OUTCOMES)
    speed = pace(figures["per_minute"])
    output.say("")
    output.say(f"Attempts of the last {attempts.span}{whose}: {ends}; {speed}")
    if attempts.whole.ended:
        shown = {name: short_duration(figures[name]) for name in DURATIONS}
        output.say(
            "wait p50 {wait_p50}, p95 {wait_p95}; run p50 {run_p50}, p95 {run_p95}".format(**shown)
        )
    if steps:
        output.say("")
        output.table(steps, ("start", *OUTCOMES))
    if names:
        output.say("")
        output.table(list(map(_shown_name, names)), NAMES)


def json_of_counts(counts: dict[str, Count]) -> dict[str, Any]:
    """Return the numbers of tasks by status, and the statuses with more tasks than counted."""
    return {
        "tasks": {status: count.value for status, count in counts.items()},
        "more_than_that": sorted(status for status, count in counts.items() if count.is_capped),
    }


def _figures(attempts: Series) -> dict[str, Any]:
    """Return the totals of the attempts; durations in seconds."""
    minutes = attempts.step_seconds * len(attempts.starts) / 60
    whole = attempts.whole
    return {
        **{outcome: getattr(whole, outcome) for outcome in OUTCOMES},
        "per_minute": whole.ended / minutes,
        **{name: getattr(whole, name) for name in DURATIONS},
    }


def pace(per_minute: float) -> str:
    """Describe how many ended per minute, or per hour or day if they are few."""
    number, unit = per_minute, "a minute"
    for minutes, longer in ((60, "an hour"), (24 * 60, "a day")):
        if 0 < number < 1:
            number, unit = per_minute * minutes, longer
    return f"{number:,.0f} {unit}" if number >= 9.95 else f"{number:.2g} {unit}"


def _steps(attempts: Series) -> list[dict[str, Any]]:
    return [
        {"start": start, **dict(zip(OUTCOMES, step, strict=False))}
        for start, step in zip(attempts.starts, attempts.steps, strict=True)
    ]


def _shown_name(shown: Compared) -> dict[str, Any]:
    slowest = None if shown.run_p50 is None else shown.slowest_seconds
    durations = (*(getattr(shown, name) for name in DURATIONS), slowest)
    changes = (_percent(shown.run_p95_change), _percent(shown.failure_change))
    cells = (shown.name, shown.count, shown.failed, *map(short_duration, durations), *changes)
    return dict(zip(NAMES, cells, strict=True))


def _percent(change: float | None) -> str:
    """Format a change since the same length of time before; empty if too little is known."""
    return "" if change is None else f"{round(change * 100):+} %"
