"""Findings of the doctor, and how it words sizes and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.apps import apps


class Severity(StrEnum):
    """How much it matters, from the least on."""

    OK = "ok"
    INFO = "info"
    """Worth knowing; nothing is wrong."""
    WARNING = "warning"
    """Slow, or about to go wrong."""
    PROBLEM = "problem"
    """Tasks do not run, or may be lost."""

    @property
    def rank(self) -> int:
        """Its place among them."""
        return list(Severity).index(self)


OK, INFO, WARNING, PROBLEM = Severity
QUEUES, WORKERS, DUTIES = "queues", "workers", "duties"
FAILURES, SCHEDULES = "failures", "schedules"
"""What is looked at of the work."""
LATE = timedelta(minutes=1)
"""For so long nothing that is due waits where a worker lives."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at, and what to do about it."""

    check: str
    """What was looked at, such as `snapshots`."""
    severity: Severity
    seen: str
    """What was seen, in a sentence; may hold text from users."""
    remedy: str = ""
    """What to do; empty where all is well."""
    subject: str = ""
    """The queue, worker, session or table that it is about."""


def worst(findings: list[Finding]) -> Severity:
    """The most severe of them; `ok` where there are none."""
    return max((each.severity for each in findings), key=lambda each: each.rank, default=OK)


def by_limits(value: float, *, warning: float, problem: float) -> Severity:
    """What a figure means that is the worse the larger it is."""
    if value >= problem:
        return PROBLEM
    return WARNING if value >= warning else OK


MOST_NAMED = 5


def megabytes(octets: float) -> str:
    """Such as `12 MB`."""
    number = octets / 1024 / 1024
    return f"{number:,.0f} MB" if number >= 10 else f"{number:.1f} MB"


def listed(names: Sequence[object]) -> str:
    """Such as `a, b, …`."""
    shown = [str(name) for name in names[:MOST_NAMED]]
    return ", ".join([*shown, "…"] if len(names) > MOST_NAMED else shown)


def table_names() -> list[str]:
    """By name."""
    models = apps.get_app_config("taskqueue").get_models()
    return sorted({model._meta.db_table for model in models})
