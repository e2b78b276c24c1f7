"""Checks of the doctor and their findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from django.apps import apps

from taskqueue.access.permissions import (
    MANAGE_WEBHOOKS,
    VIEW_ALERT_RULES,
    VIEW_LIMITS,
    VIEW_QUEUES,
    VIEW_SCHEDULES,
    VIEW_WORKFLOWS,
)
from taskqueue.monitoring.doctor.words import words_of
from taskqueue.monitoring.notice import Notice
from taskqueue.monitoring.read_models.base import Viewer


class Severity(StrEnum):
    """The severity of a finding, from the least on."""

    OK = "ok"
    # Worth knowing; nothing is wrong.
    INFO = "info"
    # Slow, or about to go wrong.
    WARNING = "warning"
    # Tasks do not run, or may be lost.
    PROBLEM = "problem"

    @property
    def rank(self) -> int:
        """The place among the severities."""
        return list(Severity).index(self)


OK, INFO, WARNING, PROBLEM = Severity
# Nothing that is due waits longer while a worker is running.
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
    # The notice that says the same, if one does.
    notice: Notice | None = field(default=None, compare=False, repr=False)

    @property
    def words(self) -> dict[str, Any]:
        """The sentence and the remedy for other languages; empty: they are not known there."""
        return words_of(self.seen, self.remedy) if self.notice is None else self.notice.words


class Check(str):
    """The name of a check; makes its findings."""

    def ok(self, seen: str) -> Finding:
        """Return that all is well."""
        return self.finding(OK, seen)

    def info(self, seen: str, remedy: str, subject: str = "") -> Finding:
        """Return something worth knowing."""
        return self.finding(INFO, seen, remedy, subject)

    def warning(self, seen: str, remedy: str, subject: str = "") -> Finding:
        """Return something slow, or about to go wrong."""
        return self.finding(WARNING, seen, remedy, subject)

    def problem(self, seen: str, remedy: str, subject: str = "") -> Finding:
        """Return something that keeps tasks from running, or may lose them."""
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
WORKFLOWS, ALERTS = Check("workflows"), Check("alerts")


# What is needed to view the findings of a check, besides the permission to view workers.
NEEDED = {
    QUEUES: VIEW_QUEUES,
    SCHEDULES: VIEW_SCHEDULES,
    DUTIES: VIEW_SCHEDULES,
    WORKFLOWS: VIEW_WORKFLOWS,
    "limits": VIEW_LIMITS,
    ALERTS: VIEW_ALERT_RULES,
    "webhooks": MANAGE_WEBHOOKS,
}


def visible_to(viewer: Viewer, findings: list[Finding]) -> list[Finding]:
    """Return the findings that a person may view, who may view tasks and workers."""
    lacking = {check for check, needed in NEEDED.items() if not viewer.has_perm(needed)}
    return [finding for finding in findings if finding.check not in lacking]


def worst(findings: list[Finding]) -> Severity:
    """Return the highest severity; `ok` for no findings."""
    return max((each.severity for each in findings), key=lambda each: each.rank, default=OK)


def by_limits(value: float, *, warning: float, problem: float) -> Severity:
    """Return the severity of a value that is the worse the larger it is."""
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
