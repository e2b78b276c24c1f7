"""`audit` and `failures`: what people did, and which errors tasks ended with."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import argument, not_empty, subcommand
from taskqueue.management.cli.values import PAST, past, whole_number
from taskqueue.monitoring.read_models.audit import ShownAuditEntry, audit_entries
from taskqueue.monitoring.read_models.base import COMMAND_LINE, from_rows
from taskqueue.monitoring.read_models.failure_group import failures as read_failures
from taskqueue.monitoring.read_models.failure_group import retrying

MOST = 1000
COLUMNS = ("at", "actor", "verb", "noun", "subject", "before", "reason", "detail")
GROUP_COLUMNS = (
    "count", "error_class", "name", "in_workflows", "last_seen", "first_seen", "example_id", "q",
)  # fmt: skip
RETRYING_COLUMNS = ("count", "example_error", "name", "next_at", "example_id", "q")


@subcommand(
    "audit",
    "who did what by hand, to what and why, the newest first",
    argument(
        "--subject", type=not_empty, metavar="WHAT",
        help="the id of a task or an operation, or the name of a queue, worker or schedule",
    ),
    argument("--by", type=not_empty, metavar="NAME", help="the person"),
    argument("--verb", type=not_empty, help="such as cancel or pause"),
    argument(
        "--since", type=past, metavar="TIME",
        help=PAST,
    ),
    argument("--limit", type=whole_number(MOST), default=50, help=f"at most {MOST}; default: 50"),
    example="audit --verb pause --since 1d",
)  # fmt: skip
def audit(flags: Namespace, output: Output) -> None:
    rows = audit_entries(
        subject=flags.subject or "", actor=flags.by or "", verb=flags.verb or "", since=flags.since
    )
    output.models(from_rows(ShownAuditEntry, rows[: flags.limit]), COLUMNS)


@subcommand(
    "failures",
    "the newest failed tasks by error and name, and those that are retried by name",
    argument(
        "--since",
        type=past,
        metavar="TIME",
        help=f"leave out tasks that failed before, {PAST}",
    ),
    argument("--limit", type=whole_number(MOST), default=20, help=f"at most {MOST}; default: 20"),
    example="failures --since 2h --limit 5",
)
def failures(flags: Namespace, output: Output) -> None:
    ended = read_failures(limit=flags.limit, since=flags.since)
    coming = retrying(COMMAND_LINE, limit=flags.limit)
    if output.is_json:
        document: dict[str, Any] = {
            "groups": ended.groups, "looked_at": ended.looked_at, "is_capped": ended.is_capped,
            "retrying": coming.groups, "retrying_looked_at": coming.looked_at,
            "retrying_is_capped": coming.is_capped,
        }  # fmt: skip
        output.sheet(document)
        return
    output.models(ended.groups, GROUP_COLUMNS)
    if coming.groups:
        output.say(["", "To be tried again:"])
        output.models(coming.groups, RETRYING_COLUMNS)
    if ended.is_capped or coming.is_capped:
        output.note(f"Only the newest {ended.looked_at:,} failed tasks were looked at.")
    if ended.groups:
        output.note("Retry those of a group with: manage.py taskqueue retry --query 'Q'")
    if owned := sum(group.in_workflows for group in ended.groups):
        output.note(
            f"Tasks of workflows, which this leaves out: {owned:,}. Retry their workflows: "
            "manage.py taskqueue workflows list --status failed"
        )
