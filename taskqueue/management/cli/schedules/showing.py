"""`schedules show`: one schedule with all that is known of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from taskqueue import schedules
from taskqueue.engine.connections import project_connection
from taskqueue.engine.schedules.reading import due_at, rule_of
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.schedules.history import history_lines, occurrences_of
from taskqueue.management.cli.schedules.previewing import next_times, time_lines, times_of
from taskqueue.management.cli.schedules.rows import aligned, now, row_of, statuses_of, utc
from taskqueue.models import Audit

TIMES = 5
OCCURRENCES = 10
ACTS = 10
AUDIT = ("at", "verb", "actor", "reason", "detail")


def _add_show(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")


def _show(flags: Namespace, output: Output) -> None:
    schedule = schedules.get(flags.name)
    rule = rule_of(schedule)
    is_due = due_at(schedule) is not None
    moments = next_times(schedule, count=TIMES) if is_due else []
    occurrences = occurrences_of(schedule, count=OCCURRENCES)
    acts = _acts_on(flags.name)
    sheet = row_of(schedule, statuses_of([schedule.last_task_id]), now=now())
    if output.is_json:
        more: dict[str, Any] = {
            "next_times": times_of(rule, moments), "occurrences": occurrences, "acts": acts,
        }  # fmt: skip
    else:
        if rule is not None:  # Every rule has its limits, mostly none.
            sheet["rule"] = {key: each for key, each in rule.as_json().items() if each is not None}
        more = {
            "next_times": "\n".join(time_lines(rule, moments) if moments else ()),
            "occurrences": "\n".join(history_lines(occurrences)),
            "acts": "\n".join(_act_lines(acts)),
        }
    output.sheet({**sheet, **more})


def _acts_on(name: str) -> list[dict[str, Any]]:
    """What was done to it by hand or by the code, the latest first."""
    acts = Audit.objects.using(project_connection().alias).filter(noun="schedule", subject=name)
    return list(acts.order_by("-id").values(*AUDIT)[:ACTS])


def _act_lines(acts: list[dict[str, Any]]) -> list[str]:
    if not acts:
        return []
    return aligned([("at (UTC)", "act", "by", "what and why"), *map(_act_cells, acts)])


def _act_cells(act: dict[str, Any]) -> tuple[str, ...]:
    why = "; ".join(filter(None, (act["detail"], act["reason"])))
    return utc(act["at"].replace(microsecond=0)), act["verb"], act["actor"], why


SHOW = Subcommand(
    name="show",
    help="one schedule, with its next times and what became of the last ones",
    add_arguments=_add_show,
    run=_show,
)
