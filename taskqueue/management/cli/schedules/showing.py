"""`schedules list`, `show` and `history`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from taskqueue import schedules
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.schedules.reading import rule_of
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, aligned, one_line, readable, utc
from taskqueue.management.cli.schedules.previewing import time_lines
from taskqueue.management.cli.times import whole_number
from taskqueue.models import Audit, Schedule
from taskqueue.models.occurrence import OccurrenceStatus
from taskqueue.monitoring.read_models.audit import ShownAuditEntry, audit_entries
from taskqueue.monitoring.read_models.base import COMMAND_LINE, json_form
from taskqueue.monitoring.read_models.schedule import (
    ShownOccurrence,
    ShownSchedule,
    occurrences_of,
    schedule_details,
    shown_occurrences,
    shown_schedules,
)
from taskqueue.monitoring.reading import now

MOST = 1000
LIST_HEAD = ("name", "state", "next (UTC)", "last run (UTC)", "")
NONE_YET = "There are no schedules: see `schedules create --help` and `schedules sync --help`."


def _list(flags: Namespace, output: Output) -> None:
    schedules = list(Schedule.objects.using(project_connection().alias).order_by("name")[:MOST])
    shown = shown_schedules(schedules, COMMAND_LINE, now())
    if output.is_json:
        output.models([schedule_json(schedule) for schedule in shown], ())
    else:
        output.say("\n".join(_lines(shown)) or NONE_YET, {})


def schedule_json(schedule: ShownSchedule) -> dict[str, Any]:
    """Return the JSON form with the rule as stored, which helps where it cannot be read."""
    return {**json_form(schedule), "rule": schedule.stored_rule}


def _lines(schedules: list[ShownSchedule]) -> list[str]:
    """Return two or three lines for each schedule: one would be too wide for a terminal."""
    if not schedules:
        return []
    head, *heads = aligned([LIST_HEAD, *map(_schedule_cells, schedules)])
    lines = [head]
    for schedule, first in zip(schedules, heads, strict=True):
        lines += [first, f"  {one_line(schedule.task)}: {one_line(schedule.rule_text)}"]
        lines += [f"  {one_line(text)}" for text in (schedule.why, schedule.trouble) if text]
    return lines


def _schedule_cells(schedule: ShownSchedule) -> tuple[str, ...]:
    next_at, last = utc(schedule.next_at), utc(schedule.last_nominal_at)
    return schedule.name, schedule.state, next_at, last, schedule.last_task_status


LIST = Subcommand(
    name="list",
    help="all schedules, with their state, next time and last run",
    add_arguments=lambda parser: None,
    run=_list,
)


HISTORY_HEAD = ("nominal time (UTC)", "status", "task, or why there is none")


def _add_history(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--count", type=whole_number(MOST), default=20, help=f"at most {MOST}; default: 20"
    )
    parser.add_argument("--skipped", action="store_true", help="only skipped runs")


def _history(flags: Namespace, output: Output) -> None:
    schedule = schedules.get(flags.name)
    rows = occurrences_of(schedule)
    if flags.skipped:
        rows = rows.filter(status=OccurrenceStatus.SKIPPED)
    occurrences = shown_occurrences(rows[: flags.count], COMMAND_LINE)
    if output.is_json:
        output.models(occurrences, ())
    else:
        lines = history_lines(occurrences)
        output.say("\n".join(lines) or f"{schedule.name}  nothing yet", {})


def history_lines(occurrences: Sequence[ShownOccurrence]) -> list[str]:
    """Return the occurrences in columns, with a heading; nothing where there are none."""
    return aligned([HISTORY_HEAD, *map(_occurrence_cells, occurrences)]) if occurrences else []


def _occurrence_cells(row: ShownOccurrence) -> tuple[str, ...]:
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
    help="the runs of a schedule, the latest first",
    add_arguments=_add_history,
    run=_history,
)


RUNS = 10
ACTS = 10


def _add_show(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")


def _show(flags: Namespace, output: Output) -> None:
    schedule = schedules.get(flags.name)
    shown = schedule_details(schedule, COMMAND_LINE, now())
    acts = Audit.objects.using(database_alias()).filter(noun="schedule", subject=flags.name)
    entries = audit_entries(acts.order_by("-id")[:ACTS])
    if output.is_json:
        output.sheet({**schedule_json(shown), "audit": entries})
        return
    rule = rule_of(schedule)
    text = {
        **readable(shown),
        "rule": shown.stored_rule,
        "next_times": "\n".join(time_lines(rule, shown.next_times) if shown.next_times else ()),
        "last_runs": "\n".join(history_lines((shown.last_runs or [])[:RUNS])),
        "audit": "\n".join(_act_lines(entries)),
    }
    if rule is not None:  # Every rule has its limits, mostly none.
        limits = rule.as_json().items()
        text["rule"] = {name: value for name, value in limits if value is not None}
    output.sheet(text, without=("conditions",))


def _act_lines(entries: list[ShownAuditEntry]) -> list[str]:
    if not entries:
        return []
    return aligned([("at (UTC)", "act", "by", "what and why"), *map(_act_cells, entries)])


def _act_cells(entry: ShownAuditEntry) -> tuple[str, ...]:
    why = "; ".join(filter(None, (entry.detail, entry.reason)))
    return utc(entry.at.replace(microsecond=0)), entry.verb, entry.actor, why


SHOW = Subcommand(
    name="show",
    help="one schedule, with its next times, its last runs and its audit entries",
    add_arguments=_add_show,
    run=_show,
)
