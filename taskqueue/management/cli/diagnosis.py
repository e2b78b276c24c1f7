"""`doctor` and `health`: what is wrong and what to do, and an exit code for probes.

`prune` and `roles`: delete old rows now; create Django's groups of users.
"""

from __future__ import annotations

import socket
from argparse import ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Iterator
from functools import partial
from textwrap import TextWrapper
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError
from django.utils.translation import override

from taskqueue.access.roles import Grant, grant
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.audit import person
from taskqueue.engine.examinations import request_examination
from taskqueue.engine.pruning import CAP, prunable, prune_all
from taskqueue.management.cli.errors import TROUBLE, line_of, sentence_of
from taskqueue.management.cli.output import Output
from taskqueue.management.cli.subcommand import PERSON, argument, not_empty, person_of, subcommand
from taskqueue.management.cli.values import duration
from taskqueue.monitoring.doctor import Finding, Severity, examine, worst
from taskqueue.monitoring.health import DATABASE, Check, Health, Wanted, probe
from taskqueue.monitoring.notices import ERROR, WARNING
from taskqueue.monitoring.reading import NoAnswer, Question

WIDTH = 100
NEVER = "never"
# Seconds for the database to answer.
LONGEST = 5.0
FINDING = ("check", "severity", "seen", "remedy", "subject")


@subcommand(
    "doctor",
    "problems of the database, its server and the workers, and their remedies",
    argument(
        "--fail-on", choices=("problem", "warning", NEVER), default="problem",
        help="exit with 1 for findings of this severity or higher; default: problem",
    ),
    argument(
        "--request", action="store_true",
        help="also have a worker run the doctor soon, so that the notices show what it finds",
    ),
    example="doctor --fail-on warning",
)  # fmt: skip
def doctor(flags: Namespace, output: Output) -> None:
    with override("en"):  # Like all output of a command.
        findings = examine()
    if flags.request:
        request_examination(project_connection())
    status = worst(findings)
    output.say(
        (line for finding in findings for line in _lines(finding)),
        {"worst": status, "findings": [_document(finding) for finding in findings]},
    )
    if flags.fail_on != NEVER and status.rank >= Severity(flags.fail_on).rank:
        counted = Counter(finding.severity for finding in findings)
        counts = [
            f"{counted[severity]} {severity}{'s' if counted[severity] > 1 else ''}"
            for severity in (Severity.PROBLEM, Severity.WARNING)
            if counted[severity]
        ]
        raise CommandError(f"The doctor found {' and '.join(counts)}.")


def _document(finding: Finding) -> dict[str, str]:
    return {name: getattr(finding, name) for name in FINDING}


def _lines(finding: Finding) -> Iterator[str]:
    """Yield the finding, and the remedy below it."""
    wrapper = TextWrapper(WIDTH, break_long_words=False, break_on_hyphens=False)
    wrapper.initial_indent = f"{finding.severity:<8} {finding.check:<12} "
    wrapper.subsequent_indent = indent = " " * len(wrapper.initial_indent)
    yield from wrapper.wrap(" ".join(finding.seen.split()))
    wrapper.initial_indent, wrapper.subsequent_indent = f"{indent}→ ", f"{indent}  "
    yield from wrapper.wrap(finding.remedy)


def _seconds(text: str) -> float:
    seconds = duration(text).total_seconds()
    if not 0 < seconds < 10**6:
        raise ArgumentTypeError(f"{text!r} must be more than 0 s and less than ten days.")
    return seconds


@subcommand(
    "health",
    "exit with 0 if workers are running and take tasks, else 1; for probes",
    argument(
        "--worker", type=not_empty, metavar="NAME",
        help="require this worker; default: any",
    ),
    argument(
        "--host", nargs="?", type=not_empty, const=socket.gethostname()[:255],
        help="require a worker on this host, or on HOST",
    ),
    argument(
        "--queue", action="append", type=not_empty, default=[], metavar="NAME",
        help="require a worker that takes tasks from this queue; may be repeated",
    ),
    argument(
        "--max-age", type=_seconds, metavar="DURATION",
        help="age of the worker's last heartbeat at most; default: its lease",
    ),
    argument(
        "--max-latency", type=_seconds, metavar="DURATION",
        help="waiting time of the oldest ready task at most, but for paused queues",
    ),
    argument(
        "--notices", choices=(ERROR, WARNING), default="", metavar="LEVEL",
        help="fail for each notice of the dashboard that is an error, or a warning or an error",
    ),
    argument(
        "--timeout", type=_seconds, metavar="DURATION",
        help=f"time for the database to answer; default: {LONGEST:g}",
    ),
)  # fmt: skip
def health(flags: Namespace, output: Output) -> None:
    wanted = Wanted(
        worker=flags.worker or "",
        host=flags.host or "",
        queues=tuple(dict.fromkeys(flags.queue)),
        max_age=flags.max_age,
        max_latency=flags.max_latency,
        notices=flags.notices,
    )
    try:
        answer = Question(partial(_look, wanted), seconds=flags.timeout or LONGEST).answer()
    except NoAnswer as error:
        answer = _without_database(str(error))
    except TROUBLE as error:
        answer = _without_database(line_of(error))
    failed = [check.detail for check in answer.checks if not check.is_ok]
    if not output.is_json and failed:
        raise CommandError(" ".join(failed))
    checks = [
        {"name": check.name, "ok": check.is_ok, "detail": check.detail} for check in answer.checks
    ]
    output.say(answer.checks[0].detail, {"status": answer.status, "checks": checks})
    if failed:
        raise SystemExit(1)


def _look(wanted: Wanted) -> Health:
    try:
        return probe(wanted)
    except TROUBLE as error:
        # This queries the database for our tables, so it is done only here.
        return _without_database(sentence_of(error))


def _without_database(detail: str) -> Health:
    return Health(checks=(Check(name=DATABASE, is_ok=False, detail=detail),))


@subcommand("roles", "create or update the groups of viewers, operators and administrators")
def roles(flags: Namespace, output: Output) -> None:
    if not apps.is_installed("django.contrib.auth"):
        raise CommandError("Groups need django.contrib.auth in INSTALLED_APPS.")
    try:
        grants = grant()
    except LookupError as error:
        raise CommandError(str(error)) from None
    output.table(list(map(_row, grants)), ("group", "done", "added", "removed"))


def _row(done: Grant) -> dict[str, Any]:
    changed = done.added or done.removed
    return {
        "group": done.role.group,
        "done": "created" if done.is_new else "updated" if changed else "unchanged",
        "added": ", ".join(done.added),
        "removed": ", ".join(done.removed),
        "permissions": sorted(done.role.permissions),
    }


@subcommand(
    "prune",
    "delete now what is past its retention; running workers do so by themselves",
    argument("--dry-run", action="store_true", help=f"only count, each up to {CAP:,}"),
    *PERSON,
    example='prune --reason "the disk is full"',
)
def prune(flags: Namespace, output: Output) -> None:
    connection = project_connection()
    if flags.dry_run:
        counts, cap, end = prunable(connection), CAP, " would be deleted"
    else:
        counts, cap, end = prune_all(connection, person=person(**person_of(flags))), None, ""
    told = ", ".join(
        f"{number}{'+' if number == cap else ''} {name}"
        for name, number in counts.items()
        if number
    )
    output.say(
        f"prune: {told}{end}" if told else "prune: nothing is past its retention",
        {**({"dry_run": True} if flags.dry_run else {}), **counts},
    )
