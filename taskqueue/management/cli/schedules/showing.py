"""`schedules list`, `show`, `history` and `preview`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError
from django.utils import timezone

from taskqueue import schedules
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.reading import conditions, rule_of, rule_text, zone_of
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.cells import aligned, one_line, utc
from taskqueue.management.cli.errors import TROUBLE, usage_error
from taskqueue.management.cli.output import Output, readable
from taskqueue.management.cli.schedules.rule_flags import RULE, has_rule, rule_from
from taskqueue.management.cli.subcommand import (
    NAME,
    argument,
    subcommand,
)
from taskqueue.management.cli.values import whole_number
from taskqueue.models import Audit, Schedule
from taskqueue.models.schedule import OPEN, OccurrenceStatus
from taskqueue.monitoring.read_models.audit import ShownAuditEntry
from taskqueue.monitoring.read_models.base import COMMAND_LINE, from_rows, json_form
from taskqueue.monitoring.read_models.schedule import (
    ShownOccurrence,
    ShownSchedule,
    occurrences_of,
    schedule_details,
    shown_occurrences,
    shown_schedules,
)
from taskqueue.monitoring.reading import now
from taskqueue.rules import Rule

MOST = 1000
MOST_RUNS = MOST_ACTS = 10
LIST_HEAD = ("name", "state", "next (UTC)", "last run (UTC)", "")
HISTORY_HEAD = ("nominal time (UTC)", "status", "task or workflow, or why there is none")
AUDIT_HEAD = ("at (UTC)", "act", "by", "what and why")
NONE_YET = (
    "There are no schedules. Those that the code declares are written when a worker starts, or by "
    "`schedules sync`; to create others, see `schedules create --help`."
)


@subcommand("list", "all schedules, with their state, next time and last run")
def listed(flags: Namespace, output: Output) -> None:
    # A request may contain a graph, which is large.
    by_name = Schedule.objects.using(database_alias()).order_by("name").defer("request")
    rows = list(by_name[:MOST])
    shown = shown_schedules(rows, COMMAND_LINE, now())
    output.say(_lines(shown) if shown else NONE_YET, list(map(schedule_json, shown)))


def schedule_json(schedule: ShownSchedule) -> dict[str, Any]:
    """Return the JSON form with the rule as stored, which helps if it cannot be read."""
    return {**json_form(schedule), "rule": schedule.stored_rule}


def _lines(shown: list[ShownSchedule]) -> list[str]:
    """Return two or three lines for each schedule: one would be too wide for a terminal."""
    cells = [
        (each.name, each.state, utc(each.next_at), utc(each.last_nominal_at), each.last_task_status)
        for each in shown
    ]
    head, *heads = aligned([LIST_HEAD, *cells])
    lines = [head]
    for schedule, first in zip(shown, heads, strict=True):
        rule = f"{schedule.task}: {schedule.rule_text}"
        more = filter(None, (rule, schedule.why, schedule.trouble))
        lines += [first, *(f"  {one_line(text)}" for text in more)]
    return lines


@subcommand(
    "history",
    "the runs of a schedule, the latest first",
    NAME,
    argument("--count", type=whole_number(MOST), default=20, help=f"at most {MOST}; default: 20"),
    argument("--skipped", action="store_true", help="only skipped runs"),
)
def history(flags: Namespace, output: Output) -> None:
    schedule = schedules.get(flags.name)
    rows = occurrences_of(schedule)
    if flags.skipped:
        rows = rows.filter(status=OccurrenceStatus.SKIPPED)
    runs = shown_occurrences(rows[: flags.count], COMMAND_LINE)
    output.say(_history_lines(runs) or f"{schedule.name}  nothing yet", runs)


def _history_lines(runs: Sequence[ShownOccurrence]) -> list[str]:
    """Return the runs in columns, with a heading; nothing if there are none.

    All times are in seconds, unless the rule is finer.
    """
    is_fine = any(run.requested_by is None and run.nominal_at.microsecond for run in runs)
    shown = partial(utc, timespec="milliseconds" if is_fine else "seconds")
    return aligned([HISTORY_HEAD, *(_run_cells(run, shown) for run in runs)]) if runs else []


def _run_cells(run: ShownOccurrence, shown: Callable[[datetime | None], str]) -> tuple[str, ...]:
    said = [str(run.task_id or ""), run.reason]
    if run.workflow_id is not None:
        said.insert(0, f"workflow {run.workflow_id}")
    if run.finished_at is not None:
        said.append(f"ended {shown(run.finished_at)}")
    if run.count > 1:
        said.append(f"{run.count:,} times until {shown(run.nominal_until)}")
    if run.requested_by is not None:
        said.append(f"(by hand: {run.requested_by or 'unnamed'})")
    return shown(run.nominal_at), run.task_status or run.status, " ".join(filter(None, said))


@subcommand("show", "one schedule, with its next times, its last runs and its audit entries", NAME)
def show(flags: Namespace, output: Output) -> None:
    schedule = schedules.get(flags.name)
    shown = schedule_details(schedule, COMMAND_LINE, now())
    acts = Audit.objects.using(database_alias()).filter(noun="schedule", subject=flags.name)
    entries = from_rows(ShownAuditEntry, acts.order_by("-id")[:MOST_ACTS])
    if output.is_json:
        output.sheet({**schedule_json(shown), "audit": entries})
        return
    rule = rule_of(schedule)
    act_cells = [
        (
            utc(entry.at.replace(microsecond=0)),
            entry.verb,
            entry.actor,
            "; ".join(filter(None, (entry.detail, entry.reason))),
        )
        for entry in entries
    ]
    text = {
        **readable(shown),
        "rule": shown.stored_rule,
        "next_times": "\n".join(_time_lines(rule, shown.next_times) if shown.next_times else ()),
        "last_runs": "\n".join(_history_lines((shown.last_runs or [])[:MOST_RUNS])),
        "audit": "\n".join(aligned([AUDIT_HEAD, *act_cells]) if act_cells else ()),
    }
    if rule is not None:  # Every rule has its bounds, though mostly none are set.
        text["rule"] = {name: value for name, value in rule.as_json().items() if value is not None}
    output.sheet(text, without=("conditions",))


@subcommand(
    "preview",
    "the next nominal times of a schedule, or of a rule before it is saved",
    argument("name", metavar="NAME", nargs="?", help="name of a schedule; or give a rule"),
    argument("--count", type=whole_number(MOST), default=5, help=f"at most {MOST}; default: 5"),
    *RULE,
)
def preview(flags: Namespace, output: Output) -> None:
    if (flags.name is None) != has_rule(flags):
        raise usage_error("Give the name of a schedule, or a rule such as --cron.")
    rule: Rule | None
    if flags.name is None:
        rule = rule_from(flags)
        text = rule.text
        # Makes no database query: a rule can be tried before there is a database.
        times = schedules.preview_rule(rule, count=flags.count, after=timezone.now())
        lines = _time_lines(rule, times) if times else ["It has no future time."]
    else:
        schedule = schedules.get(flags.name)
        try:
            times = schedules.preview(flags.name, count=flags.count)
        except (TaskQueueError, *TROUBLE):
            raise
        except Exception as error:  # A stored rule may raise any error.
            raise CommandError(f"The rule failed: {type(error).__name__}: {error}") from None
        rule, text = rule_of(schedule), rule_text(schedule)
        lines = _time_lines(rule, times) if times else [_why_none(schedule)]
    local = ZoneInfo(zone_of(rule))
    output.say(
        [text, *lines],
        {
            "rule_text": text,
            "rule": None if rule is None else rule.as_json(),
            "times": [
                {"utc": time.astimezone(UTC), "local": time.astimezone(local)} for time in times
            ],
        },
    )


def _time_lines(rule: Rule | None, times: list[datetime]) -> list[str]:
    """Return the times in UTC, and by the rule's wall clock if that differs."""
    zone = zone_of(rule)
    if zone == "UTC":
        return aligned([["UTC"], *([utc(time)] for time in times)])
    local = [time.astimezone(ZoneInfo(zone)).strftime("%a %Y-%m-%d %H:%M:%S %z") for time in times]
    return aligned([["UTC", zone], *zip(map(utc, times), local, strict=True)])


def _why_none(schedule: Schedule) -> str:
    state = next(iter(conditions(schedule, now())), "")
    if state in ("disabled", "removed"):
        return f"It is {state}: nothing is due."
    if occurrences_of(schedule).filter(status__in=OPEN).exists():
        return "Its next time is known when the current run has ended."
    return "It has no future time."
