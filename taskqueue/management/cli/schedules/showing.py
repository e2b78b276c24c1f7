"""`schedules show`: one schedule, with its next times, its last runs and its audit entries."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from taskqueue import schedules
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.reading import rule_of
from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, readable
from taskqueue.management.cli.schedules.history import history_lines
from taskqueue.management.cli.schedules.previewing import time_lines
from taskqueue.management.cli.schedules.rows import aligned, utc
from taskqueue.models import Audit
from taskqueue.monitoring.read_models.audit import ShownAuditEntry, audit_entries
from taskqueue.monitoring.read_models.base import COMMAND_LINE, json_form
from taskqueue.monitoring.read_models.schedule import schedule_details
from taskqueue.monitoring.reading import now

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
        output.sheet({**json_form(shown), "audit": entries})
        return
    rule = rule_of(schedule)
    text = {
        **readable(shown),
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
