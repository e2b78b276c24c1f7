"""`doctor` and `health`: what is wrong and what to do, and an exit code for probes."""

from __future__ import annotations

import socket
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from dataclasses import asdict
from functools import partial
from textwrap import wrap

from django.core.management.base import CommandError

from taskqueue.management.cli.base import TROUBLE, Subcommand, given, line_of, sentence_of
from taskqueue.management.cli.output import Output, without_controls
from taskqueue.management.cli.times import duration
from taskqueue.monitoring.bounded import NoAnswer, Question
from taskqueue.monitoring.doctor import Finding, Severity, examine, worst
from taskqueue.monitoring.health import DATABASE, Check, Health, Wanted, probe

WIDTH = 100
NEVER = "never"


def _add_doctor(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--fail-on", choices=("problem", "warning", NEVER), default="problem",
        help="exit with 1 for findings of this severity or higher; default: problem",
    )  # fmt: skip


def _doctor(flags: Namespace, output: Output) -> None:
    findings = examine()
    status = worst(findings)
    output.say(
        "\n".join(line for finding in findings for line in _lines(finding)),
        {"worst": status, "findings": [asdict(finding) for finding in findings]},
    )
    if flags.fail_on != NEVER and status.rank >= Severity(flags.fail_on).rank:
        raise CommandError(_summary(findings))


def _lines(finding: Finding) -> list[str]:
    """Return the finding, and the remedy below it."""
    head = f"{finding.severity:<8} {finding.check:<11}"
    indent = " " * len(head)
    lines = wrap(
        without_controls(" ".join(finding.seen.split())), WIDTH,
        initial_indent=head, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    if finding.remedy:
        lines += wrap(
            without_controls(finding.remedy), WIDTH,
            initial_indent=f"{indent}→ ", subsequent_indent=f"{indent}  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    return lines


def _summary(findings: list[Finding]) -> str:
    counted = Counter(finding.severity for finding in findings)
    counts = [
        f"{counted[severity]} {severity}{'s' if counted[severity] > 1 else ''}"
        for severity in (Severity.PROBLEM, Severity.WARNING)
        if counted[severity]
    ]
    return f"The doctor found {' and '.join(counts)}."


DOCTOR = Subcommand(
    name="doctor",
    help="problems of the database, its server and the workers, and their remedies",
    add_arguments=_add_doctor,
    run=_doctor,
    example="doctor --fail-on warning",
)


LONGEST = 5.0
"""Seconds."""


def _add_health(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--worker", type=given, metavar="NAME", help="require this worker; default: any"
    )
    parser.add_argument(
        "--host", nargs="?", type=given, const=socket.gethostname()[:255],
        help="require a worker on this host, or on HOST",
    )  # fmt: skip
    parser.add_argument(
        "--queue", action="append", type=given, default=[], metavar="NAME",
        help="require a worker that takes tasks from this queue; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--max-age", type=_seconds, metavar="SECONDS",
        help="age of the worker's last heartbeat at most; default: its lease",
    )  # fmt: skip
    parser.add_argument(
        "--max-latency", type=_seconds, metavar="SECONDS",
        help="waiting time of the oldest ready task at most, but for paused queues",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=_seconds, default=LONGEST, metavar="SECONDS",
        help=f"time for the database to answer; default: {LONGEST:g}",
    )  # fmt: skip


def _health(flags: Namespace, output: Output) -> None:
    wanted = Wanted(
        worker=flags.worker or "",
        host=flags.host or "",
        queues=tuple(dict.fromkeys(flags.queue)),
        max_age=flags.max_age,
        max_latency=flags.max_latency,
    )
    health = _asked(wanted, seconds=flags.timeout)
    failed = [check.detail for check in health.checks if not check.is_ok]
    if not output.is_json and failed:
        raise CommandError(" ".join(failed))
    checks = [
        {"name": check.name, "ok": check.is_ok, "detail": check.detail} for check in health.checks
    ]
    output.say(health.checks[0].detail, {"status": health.status, "checks": checks})
    if failed:
        raise SystemExit(1)


def _asked(wanted: Wanted, *, seconds: float) -> Health:
    try:
        return Question(partial(_look, wanted), seconds=seconds).answer()
    except NoAnswer as error:
        return _without_database(str(error))
    except TROUBLE as error:
        return _without_database(line_of(error))


def _look(wanted: Wanted) -> Health:
    try:
        return probe(wanted)
    except TROUBLE as error:
        # Asks the database whether it has our tables, and therefore does so here.
        return _without_database(sentence_of(error))


def _without_database(detail: str) -> Health:
    return Health(checks=(Check(name=DATABASE, is_ok=False, detail=detail),))


def _seconds(text: str) -> float:
    seconds = duration(text).total_seconds()
    if not 0 < seconds < 10**6:
        raise ArgumentTypeError(f"{text!r} must be more than 0 s and less than ten days.")
    return seconds


HEALTH = Subcommand(
    name="health",
    help="exit with 0 if workers are running and take tasks, else 1; for probes",
    add_arguments=_add_health,
    run=_health,
)
