"""`schedules preview`: the next nominal times of a schedule, or of a rule before it is saved."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError
from django.utils import timezone

from taskqueue import schedules
from taskqueue.engine.schedules.reading import conditions, rule_of, rule_text, zone_of
from taskqueue.exceptions import TaskQueueError
from taskqueue.management.cli.base import TROUBLE, Subcommand, usage_error
from taskqueue.management.cli.output import (
    Output,
    aligned,
    utc,
)
from taskqueue.management.cli.schedules.rule_flags import add_rule, has_rule, rule_from
from taskqueue.management.cli.times import whole_number
from taskqueue.models import Schedule
from taskqueue.models.occurrence import OPEN
from taskqueue.monitoring.read_models.schedule import occurrences_of
from taskqueue.monitoring.reading import now
from taskqueue.rules import Rule

MOST = 1000


def _add_preview(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="name of a schedule; or give a rule"
    )
    parser.add_argument(
        "--count", type=whole_number(MOST), default=5, help=f"at most {MOST}; default: 5"
    )
    add_rule(parser)


def _preview(flags: Namespace, output: Output) -> None:
    if (flags.name is None) != has_rule(flags):
        raise usage_error("Give the name of a schedule, or a rule such as --cron.")
    if flags.name is None:
        rule = rule_from(flags)
        # Nothing is asked of the database: a rule can be tried before there is one.
        found = schedules.preview_rule(rule, count=flags.count, after=timezone.now())
        _print(rule, rule.text, found, "It has no future time.", output)
    else:
        schedule = schedules.get(flags.name)
        try:
            found = schedules.preview(flags.name, count=flags.count)
        except (TaskQueueError, *TROUBLE):
            raise
        except Exception as error:  # A rule that is stored may raise anything.
            raise CommandError(f"The rule failed: {type(error).__name__}: {error}") from None
        _print(rule_of(schedule), rule_text(schedule), found, _why_none(schedule), output)


def times_of(rule: Rule | None, moments: list[datetime]) -> list[dict[str, Any]]:
    """Return the times in UTC, and on the wall clock of the rule where that differs."""
    zone = ZoneInfo(zone_of(rule))
    return [{"utc": each.astimezone(UTC), "local": each.astimezone(zone)} for each in moments]


def time_lines(rule: Rule | None, moments: list[datetime]) -> list[str]:
    """Return the times in columns, with a heading."""
    name = zone_of(rule)
    if name == "UTC":
        return aligned([["UTC"], *([utc(each)] for each in moments)])
    zone = ZoneInfo(name)
    local = [each.astimezone(zone).strftime("%a %Y-%m-%d %H:%M:%S %z") for each in moments]
    return aligned([["UTC", name], *zip(map(utc, moments), local, strict=True)])


def _print(
    rule: Rule | None, text: str, moments: list[datetime], otherwise: str, output: Output
) -> None:
    lines = time_lines(rule, moments) if moments else [otherwise]
    output.say(
        "\n".join([text, *lines]),
        {
            "rule_text": text,
            "rule": None if rule is None else rule.as_json(),
            "times": times_of(rule, moments),
        },
    )


def _why_none(schedule: Schedule) -> str:
    state = next(iter(conditions(schedule, now())), "")
    if state in ("disabled", "removed"):
        return f"It is {state}: nothing is due."
    if occurrences_of(schedule).filter(status__in=OPEN).exists():
        return "Its next time is known when the current run has ended."
    return "It has no future time."


PREVIEW = Subcommand(
    name="preview",
    help="the next nominal times of a schedule, or of a rule before it is saved",
    add_arguments=_add_preview,
    run=_preview,
)
