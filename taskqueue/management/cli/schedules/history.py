"""`schedules history`: what became of the nominal times of a schedule, the latest first."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from taskqueue import schedules
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.schedules.rows import aligned, utc
from taskqueue.management.cli.times import whole_number
from taskqueue.models.occurrence import OccurrenceStatus
from taskqueue.monitoring.read_models.schedule import (
    ShownOccurrence,
    occurrences_of,
    shown_occurrences,
)

MOST = 1000
HEAD = ("nominal time (UTC)", "became", "task, or why there is none")


def _add_history(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--count", type=whole_number(MOST), default=20, help=f"at most {MOST}; default: 20"
    )
    parser.add_argument("--skipped", action="store_true", help="only those that did not run")


def _history(flags: Namespace, output: Output) -> None:
    schedule = schedules.get(flags.name)
    rows = occurrences_of(schedule)
    if flags.skipped:
        rows = rows.filter(status=OccurrenceStatus.SKIPPED)
    occurrences = shown_occurrences(rows[: flags.count])
    if output.is_json:
        output.models(occurrences, ())
    else:
        lines = history_lines(occurrences)
        output.say("\n".join(lines) or f"{schedule.name}  nothing yet", {})


def history_lines(occurrences: Sequence[ShownOccurrence]) -> list[str]:
    """The occurrences in columns, under their heading; nothing where there are none."""
    return aligned([HEAD, *map(_cells, occurrences)]) if occurrences else []


def _cells(row: ShownOccurrence) -> tuple[str, ...]:
    said = [str(row.task_id or ""), row.reason]
    if row.finished_at is not None:
        said.append(f"ended {utc(row.finished_at.replace(microsecond=0))}")
    if row.count > 1:
        said.append(f"{row.count} times until {utc(row.nominal_until)}")
    if row.requested_by is not None:
        said.append(f"(by hand: {row.requested_by or 'unnamed'})")
    return utc(row.nominal_at), row.task_status or row.status, " ".join(filter(None, said))


HISTORY = Subcommand(
    name="history",
    help="what became of a schedule's nominal times, the latest first",
    add_arguments=_add_history,
    run=_history,
)
