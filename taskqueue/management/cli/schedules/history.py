"""`schedules history`: what became of the nominal times of a schedule, the latest first."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any
from uuid import UUID

from taskqueue import schedules
from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.schedules.rows import aligned, statuses_of, utc
from taskqueue.management.cli.times import whole_number
from taskqueue.models import Occurrence, Schedule
from taskqueue.models.occurrence import OccurrenceStatus

MOST = 1000
HEAD = ("nominal time (UTC)", "became", "task, or why there is none")
COLUMNS = (
    "nominal_at", "nominal_until", "count", "status", "reason", "task_id", "requested_by",
    "created_at", "enqueued_at", "finished_at",
)  # fmt: skip


def _add_history(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--count", type=whole_number(MOST), default=20, help=f"at most {MOST}; default: 20"
    )
    parser.add_argument("--skipped", action="store_true", help="only those that did not run")


def _history(flags: Namespace, output: Output) -> None:
    schedule = schedules.get(flags.name)
    rows = occurrences_of(schedule, count=flags.count, only_skipped=flags.skipped)
    if output.is_json:
        output.table(rows, ())
    else:
        output.say("\n".join(history_lines(rows)) or f"{schedule.name}  nothing yet", {})


def occurrences_of(
    schedule: Schedule, *, count: int, only_skipped: bool = False
) -> list[dict[str, Any]]:
    """The latest occurrences with all that is known of them, the latest first."""
    chosen = Occurrence.objects.using(project_connection().alias).filter(schedule_id=schedule.id)
    if only_skipped:
        chosen = chosen.filter(status=OccurrenceStatus.SKIPPED)
    found = list(chosen.order_by("-nominal_at")[:count])
    statuses = statuses_of(row.task_id for row in found)
    return [_row(row, statuses) for row in found]


def _row(row: Occurrence, statuses: dict[UUID, str]) -> dict[str, Any]:
    fields = {name.removesuffix("_id"): getattr(row, name) for name in COLUMNS}
    status = row.task_status
    if not status and row.task_id is not None:
        status = statuses.get(row.task_id, "")
    return {**fields, "task_status": status}


def history_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The occurrences in columns, under their heading; nothing where there are none."""
    return aligned([HEAD, *(_cells(row) for row in rows)]) if rows else []


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    became = row["task_status"] or row["status"]
    said = [str(row["task"] or ""), row["reason"]]
    if row["finished_at"] is not None:
        said.append(f"ended {utc(row['finished_at'].replace(microsecond=0))}")
    if row["count"] > 1:
        said.append(f"{row['count']} times until {utc(row['nominal_until'])}")
    if row["requested_by"] is not None:
        said.append(f"(by hand: {row['requested_by'] or 'unnamed'})")
    return utc(row["nominal_at"]), became, " ".join(filter(None, said))


HISTORY = Subcommand(
    name="history",
    help="what became of a schedule's nominal times, the latest first",
    add_arguments=_add_history,
    run=_history,
)
