"""Checks of the doctor and their findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.apps import apps

from taskqueue.monitoring.check_permissions import OF_CHECKS
from taskqueue.monitoring.doctor.words import words_of
from taskqueue.monitoring.notice import Notice
from taskqueue.monitoring.read_models.base import Viewer


class Severity(StrEnum):
    """The severity of a finding, from the least on."""

    OK = "ok"
    # Worth knowing, but not wrong.
    INFO = "info"
    # Slow, or likely to go wrong.
    WARNING = "warning"
    # Tasks do not run, or may be lost.
    PROBLEM = "problem"

    @property
    def rank(self) -> int:
        """Return the position among the severities."""
        return list(Severity).index(self)


OK, INFO, WARNING, PROBLEM = Severity
# While a worker is running, nothing that is due waits longer than this.
LATE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of a check, and what to do about it."""

    # The name of the check, such as `snapshots`.
    check: str
    severity: Severity
    # A sentence; may contain text from users.
    seen: str
    # The remedy; empty where all is well.
    remedy: str = ""
    # The queue, worker, session or table that it is about.
    subject: str = ""
    # The code of the notice that says the same, if there is one.
    notice: Notice | None = field(default=None, compare=False, repr=False)

    @property
    def words(self) -> dict[str, Any]:
        """The data to translate the sentence and the remedy; empty if that is not possible."""
        return words_of(self.seen, self.remedy) if self.notice is None else self.notice.words


class Check(str):
    """The name of a check, which creates its findings."""

    def ok(self, seen: str) -> Finding:
        """Return a finding that all is well."""
        return self.finding(OK, seen)

    def info(self, seen: str, remedy: str, subject: str = "") -> Finding:
        """Return a finding that is worth knowing."""
        return self.finding(INFO, seen, remedy, subject)

    def warning(self, seen: str, remedy: str, subject: str = "") -> Finding:
        """Return a finding about something slow, or likely to go wrong."""
        return self.finding(WARNING, seen, remedy, subject)

    def problem(self, seen: str, remedy: str, subject: str = "") -> Finding:
        """Return a finding about something that keeps tasks from running, or may lose them."""
        return self.finding(PROBLEM, seen, remedy, subject)

    def finding(
        self, severity: Severity, seen: str, remedy: str = "", subject: str = ""
    ) -> Finding:
        """Return a finding of that severity."""
        return Finding(
            check=str(self), severity=severity, seen=seen, remedy=remedy, subject=subject
        )


QUEUES, WORKERS, DUTIES = Check("queues"), Check("workers"), Check("duties")
FAILURES, SCHEDULES = Check("failures"), Check("schedules")
WORKFLOWS, LIMITS, ALERTS = Check("workflows"), Check("limits"), Check("alerts")


def visible_to(viewer: Viewer, findings: list[Finding]) -> list[Finding]:
    """Return the findings that a person who may view tasks and workers may see."""
    lacking = {check for check, needed in OF_CHECKS.items() if not viewer.has_perm(needed)}
    return [finding for finding in findings if finding.check not in lacking]


def worst(findings: list[Finding]) -> Severity:
    """Return the highest severity; `ok` for no findings."""
    return max((each.severity for each in findings), key=lambda each: each.rank, default=OK)


def by_limits(value: float, *, warning: float, problem: float) -> Severity:
    """Return the severity of a value for which larger is worse."""
    if value >= problem:
        return PROBLEM
    return WARNING if value >= warning else OK


def megabytes(octets: float) -> str:
    """Return a size such as `12 MB`."""
    number = octets / 1024 / 1024
    return f"{number:,.0f} MB" if number >= 10 else f"{number:.1f} MB"


def table_names() -> list[str]:
    """Return the names of taskqueue's tables."""
    models = apps.get_app_config("taskqueue").get_models()
    return sorted({model._meta.db_table for model in models})
