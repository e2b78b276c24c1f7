"""`schedules list`: every schedule, how it stands, when it is due, how it went last."""

from __future__ import annotations

from argparse import Namespace

from taskqueue.engine.connections import project_connection
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, told
from taskqueue.management.cli.schedules.rows import aligned, utc
from taskqueue.models import Schedule
from taskqueue.monitoring.read_models.base import COMMAND_LINE
from taskqueue.monitoring.read_models.schedule import ShownSchedule, shown_schedules
from taskqueue.monitoring.reading import now

MOST = 1000
HEAD = ("name", "state", "next (UTC)", "last run (UTC)", "")
NONE_YET = "There is no schedule: see `schedules create --help` and `schedules sync --help`."


def _list(flags: Namespace, output: Output) -> None:
    schedules = list(Schedule.objects.using(project_connection().alias).order_by("name")[:MOST])
    shown = shown_schedules(schedules, COMMAND_LINE, now())
    if output.is_json:
        output.models(shown, ())
    else:
        output.say("\n".join(_lines(shown)) or NONE_YET, {})


def _lines(schedules: list[ShownSchedule]) -> list[str]:
    """Two lines or three a schedule: with the rule in words, one would not fit a terminal."""
    if not schedules:
        return []
    head, *heads = aligned([HEAD, *map(_cells, schedules)])
    lines = [head]
    for schedule, first in zip(schedules, heads, strict=True):
        lines += [first, f"  {told(schedule.task)}: {told(schedule.rule_text)}"]
        lines += [f"  {told(text)}" for text in (schedule.why, schedule.trouble) if text]
    return lines


def _cells(schedule: ShownSchedule) -> tuple[str, ...]:
    next_at, last = utc(schedule.next_at), utc(schedule.last_nominal_at)
    return schedule.name, schedule.state, next_at, last, schedule.last_task_status


LIST = Subcommand(
    name="list",
    help="every schedule: how it stands, when it is due, how it went last",
    add_arguments=lambda parser: None,
    run=_list,
)
