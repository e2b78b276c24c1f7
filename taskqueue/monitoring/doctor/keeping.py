"""Findings in the form in which workers keep them, from which notices and alerts are made."""

from __future__ import annotations

from collections.abc import Iterable

from taskqueue.engine.examinations import Note
from taskqueue.monitoring.doctor.configuration import CLOCKS, SETTINGS
from taskqueue.monitoring.doctor.finding import PROBLEM, WARNING, Finding

# What a process knows of itself and its host alone.
OF_HOST = frozenset({SETTINGS, CLOCKS})
# Whoever develops a project wants it, and the doctor's page says it to others.
LEFT_OUT = frozenset({(SETTINGS, "DEBUG")})


def notes_of(findings: Iterable[Finding], *, host: str) -> list[Note]:
    """Return the warnings and problems that were found on a host."""
    return [
        _note_of(finding, host if finding.check in OF_HOST else "")
        for finding in findings
        if finding.severity in (WARNING, PROBLEM)
        and (finding.check, finding.subject) not in LEFT_OUT
    ]


def _note_of(finding: Finding, host: str) -> Note:
    return Note(
        check=finding.check,
        severity=finding.severity.value,
        subject=finding.subject or host,
        seen=finding.seen,
        remedy=finding.remedy,
        words=finding.words,
        is_notice=finding.notice is not None,
        host=host,
        since="",
        at="",
    )
