"""One refresh of `top` as a document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from taskqueue.monitoring.overview import Overview


def document(overview: Overview) -> dict[str, Any]:
    """All that a frame shows, and what it has no room for."""
    return {
        "at": overview.at,
        "tasks": {status: count.value for status, count in overview.counts.items()},
        "more_than_that": sorted(
            status for status, count in overview.counts.items() if count.is_capped
        ),
        "per_minute": overview.per_minute,
        "this_minute": overview.this_minute,
        "failed_per_minute": overview.failed_per_minute,
        "wait_p95": overview.hour.overall_wait_p95,
        "run_p95": overview.hour.overall_run_p95,
        "queues": overview.queues,
        "workers": [asdict(worker) for worker in overview.workers],
        "running": [asdict(task) for task in overview.running],
        "notices": [asdict(notice) for notice in overview.notices],
    }
