"""`schedules list`: every schedule, how it stands, when it is due, how it went last."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, told
from taskqueue.management.cli.schedules.rows import aligned, now, row_of, statuses_of, utc
from taskqueue.models import Schedule

MOST = 1000
HEAD = ("name", "state", "next (UTC)", "last run (UTC)", "")
NONE_YET = "There is no schedule: see `schedules create --help` and `schedules sync --help`."


def _list(flags: Namespace, output: Output) -> None:
    schedules = list(Schedule.objects.using(project_connection().alias).order_by("name")[:MOST])
    moment = now()
    statuses = statuses_of(schedule.last_task_id for schedule in schedules)
    rows = [row_of(schedule, statuses, now=moment) for schedule in schedules]
    if output.is_json:
        output.table(rows, ())
    else:
        output.say("\n".join(_lines(rows)) or NONE_YET, {})


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    """Two lines or three a schedule: with the rule in words, one would not fit a terminal."""
    if not rows:
        return []
    head, *heads = aligned([HEAD, *(_cells(row) for row in rows)])
    lines = [head]
    for row, first in zip(rows, heads, strict=True):
        lines += [first, f"  {told(row['task'])}: {told(row['rule_text'])}"]
        lines += [f"  {told(each)}" for each in (row["why"], row["trouble"]) if each]
    return lines


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    last = row["last_nominal_at"]
    return row["name"], row["state"], utc(row["next_at"]), utc(last), row["last_task_status"]


LIST = Subcommand(
    name="list",
    help="every schedule: how it stands, when it is due, how it went last",
    add_arguments=lambda parser: None,
    run=_list,
)
