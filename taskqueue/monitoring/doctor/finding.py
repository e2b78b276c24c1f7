"""What the doctor says of one thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


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
