"""`doctor`: what is wrong with the database, its server and the workers, and what to do."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import asdict
from textwrap import wrap

from django.core.management.base import CommandError

from taskqueue.management.cli.base import Subcommand
from taskqueue.management.cli.output import Output, without_controls
from taskqueue.monitoring.doctor import Finding, Severity, examine, worst

WIDTH = 100
NEVER = "never"


def _add_doctor(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--fail-on", choices=("problem", "warning", NEVER), default="problem",
        help="exit with 1 where something is so severe, or more; default: problem",
    )  # fmt: skip


def _doctor(flags: Namespace, output: Output) -> None:
    findings = examine()
    status = worst(findings)
    output.say(
        "\n".join(line for each in findings for line in _lines(each)),
        {"worst": status, "findings": [asdict(each) for each in findings]},
    )
    if flags.fail_on != NEVER and status.rank >= Severity(flags.fail_on).rank:
        raise CommandError(_summary(findings))


def _lines(finding: Finding) -> list[str]:
    """What was seen, and the remedy below it."""
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
    counted = Counter(each.severity for each in findings)
    told = [
        f"{counted[severity]} {severity}{'s' if counted[severity] > 1 else ''}"
        for severity in (Severity.PROBLEM, Severity.WARNING)
        if counted[severity]
    ]
    return f"The doctor found {' and '.join(told)}."


DOCTOR = Subcommand(
    name="doctor",
    help="what is wrong with the database, its server and the workers, and what to do",
    add_arguments=_add_doctor,
    run=_doctor,
    example="doctor --fail-on warning",
)
