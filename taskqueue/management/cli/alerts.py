"""`alerts …`: what is firing, acknowledging it, and the rules that raise it."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from functools import partial
from typing import Any

from django.core.management.base import CommandError

from taskqueue.core.alerts import AlertKind, AlertScope
from taskqueue.core.suggestions import did_you_mean
from taskqueue.engine.alerts.alert_verbs import ALERT_RULE_VERBS, ALERT_VERBS
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import (
    NAME,
    PERSON,
    Argument,
    Subcommand,
    actions_of,
    argument,
    one_of,
    person_of,
    subcommand,
)
from taskqueue.management.cli.values import duration, moment, number_or_duration, whole_number
from taskqueue.monitoring.read_models.alert import (
    alert_rows,
    firing_alerts,
    rule_named,
    rule_rows,
    shown_alerts,
    shown_rules,
)
from taskqueue.monitoring.read_models.base import json_form

MOST = 1000
COLUMNS = (
    "id", "rule", "subject", "status", "raised_at", "ended_at", "acknowledged_by", "is_silenced",
    "summary",
)  # fmt: skip
RULE_COLUMNS = (
    "name", "kind", "scope", "pattern", "threshold", "firing", "is_enabled", "source",
    "silenced_until", "mail", "endpoints", "trouble",
)  # fmt: skip
# An argument without a default, so that an edit can see which were given.
optional = partial(argument, default=SUPPRESS)
FIELDS = ("kind", "scope", "pattern", "threshold", "window", "wait", "repeat", "mail",
          "endpoints", "url", "enabled")  # fmt: skip


def _fields(*, is_new: bool) -> list[Argument]:
    kinds, scopes = [each.value for each in AlertKind], [each.value for each in AlertScope]
    return [
        optional("--kind", required=is_new, choices=kinds, help="the condition to look for"),
        optional("--scope", choices=scopes, help="the names with which the pattern is compared"),
        optional("--pattern", metavar="PATTERN", help="such as 'mail*'; empty: any"),
        optional(
            "--threshold",
            type=number_or_duration,
            metavar="NUMBER",
            help="default: that of the kind; a duration such as 5m where it is one",
        ),
        optional("--window", type=duration, metavar="DURATION", help="how long to look back"),
        optional(
            "--wait", type=duration, metavar="DURATION", help="how long the condition has to hold"
        ),
        optional(
            "--repeat", type=duration, metavar="DURATION", help="between reminders; default: 4h"
        ),
        optional("--mail", nargs="*", metavar="ADDRESS", help="who gets mail"),
        optional("--endpoints", nargs="*", metavar="ID", help="webhook endpoints that are called"),
        optional("--url", metavar="URL", help="that a heartbeat calls while all is well"),
    ]


@subcommand(
    "list",
    "the alerts that are firing",
    argument("--all", action="store_true", help="those that are over too, the newest first"),
    argument("--limit", type=whole_number(MOST), default=100, help=f"at most {MOST}; default: 100"),
    example="alerts list --all",
)
def listed(flags: Namespace, output: Output) -> None:
    given = vars(flags)
    limit = given.get("limit", 100)
    if given.get("all"):
        found = shown_alerts(alert_rows().order_by("-id")[:limit])
    else:
        found = firing_alerts(limit=limit)
    output.models(found, COLUMNS)


@subcommand(
    "ack",
    ALERT_VERBS["acknowledge"].help,
    argument("id", metavar="ID", help="of the alert"),
    *PERSON,
    example="alerts ack 17 --reason 'on it'",
)
def acknowledge(flags: Namespace, output: Output) -> None:
    verb = ALERT_VERBS["acknowledge"]
    verb.act(flags.id, **person_of(flags))
    output.say(verb.told(flags.id), json_form(shown_alerts(alert_rows().filter(pk=flags.id))[0]))


@subcommand("rules", "the rules that raise alerts", example="alerts rules")
def rules(flags: Namespace, output: Output) -> None:
    output.models(shown_rules(rule_rows()[:MOST]), RULE_COLUMNS)


@subcommand("show", "one rule, with its alerts", NAME, example="alerts show 'default doctor'")
def show(flags: Namespace, output: Output) -> None:
    row = _row(flags.name)
    (shown,) = shown_rules([row])
    found = shown_alerts(alert_rows().filter(rule_id=row.pk).order_by("-id")[:20])
    output.sheet({**vars(shown), "alerts": found})


@subcommand(
    "create",
    ALERT_RULE_VERBS["create"].help,
    NAME,
    *_fields(is_new=True),
    *PERSON,
    example="alerts create late --kind queue_latency --scope queue --pattern 'mail*'"
    " --threshold 10m --mail ops@example.org",
)
def create(flags: Namespace, output: Output) -> None:
    _act("create", flags, output, **_given(flags))


@subcommand(
    "edit",
    ALERT_RULE_VERBS["edit"].help,
    NAME,
    *_fields(is_new=False),
    optional("--enable", dest="enabled", action="store_true", help="enable the rule"),
    optional(
        "--disable",
        dest="enabled",
        action="store_false",
        help="disable the rule: it is not checked",
    ),
    *PERSON,
    example="alerts edit late --threshold 15m",
)
def edit(flags: Namespace, output: Output) -> None:
    _act("edit", flags, output, **_given(flags))


@subcommand(
    "silence",
    ALERT_RULE_VERBS["silence"].help,
    NAME,
    one_of(
        argument(
            "--for", "--in", type=duration, dest="until", metavar="DURATION",
            help="a duration such as 2h",
        ),
        argument(
            "--until", "--at", type=moment, dest="until", metavar="TIME",
            help="a time such as 2026-03-01T12:00+00:00",
        ),
    ),
    *PERSON,
    example="alerts silence late --for 2h --reason 'migration'",
)  # fmt: skip
def silence(flags: Namespace, output: Output) -> None:
    until = {} if flags.until is None else {"until": flags.until}
    _act("silence", flags, output, **until)


@subcommand("unsilence", ALERT_RULE_VERBS["unsilence"].help, NAME, *PERSON)
def unsilence(flags: Namespace, output: Output) -> None:
    _act("unsilence", flags, output)


@subcommand(
    "test", ALERT_RULE_VERBS["test"].help, NAME, *PERSON, example="alerts test 'default doctor'"
)
def test(flags: Namespace, output: Output) -> None:
    _act("test", flags, output)


@subcommand("delete", ALERT_RULE_VERBS["delete"].help, NAME, *PERSON, example="alerts delete late")
def delete(flags: Namespace, output: Output) -> None:
    verb = ALERT_RULE_VERBS["delete"]
    verb.act(flags.name, **person_of(flags))
    output.say(verb.told(flags.name), {"name": flags.name, "deleted": True})


def _given(flags: Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(flags).items() if name in FIELDS}


def _act(name: str, flags: Namespace, output: Output, **arguments: Any) -> None:
    verb = ALERT_RULE_VERBS[name]
    assert verb.function is not None
    verb.function(flags.name, **arguments, **person_of(flags))
    (shown,) = shown_rules([_row(flags.name)])
    output.say(verb.told(flags.name), json_form(shown))


def _row(name: str) -> Any:
    row = rule_named(name)
    if row is None:
        hint = did_you_mean(name, list(rule_rows().values_list("name", flat=True)[:MOST]))
        raise CommandError(f"There is no alert rule {name!r}.{hint}")
    return row


alerts = Subcommand(
    name="alerts",
    help="view and acknowledge alerts, and manage the rules that raise them",
    arguments=[
        actions_of(listed, acknowledge, rules, show, create, edit, silence, unsilence, test, delete)
    ],
    run=listed.run,
)
