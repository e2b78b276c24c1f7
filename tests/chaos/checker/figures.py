"""The figures of a run, for the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.checker.ownership import taken_over


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What a run came to. Latencies in seconds, from a lease's last renewal to its takeover."""

    tasks: int
    lost: int
    doubled: int
    """Atomic tasks with more effects than successes."""
    stale_writes: int
    takeovers: int
    takeover_p50: float | None
    takeover_p99: float | None


def figures(evidence: Evidence, violations: Sequence[Violation]) -> Figures:
    """Count what was found, and how long takeovers took."""
    counts = Counter(violation.invariant for violation in violations)
    latencies = sorted(_latencies(evidence))
    return Figures(
        tasks=len(evidence.tasks) + len(evidence.pruned),
        lost=counts[1],
        doubled=len({each.task_id for each in violations if each.invariant == 6}),
        stale_writes=counts[5],
        takeovers=len(latencies),
        takeover_p50=quantile(latencies, 0.5),
        takeover_p99=quantile(latencies, 0.99),
    )


def _latencies(evidence: Evidence) -> list[float]:
    """An outage does not count: nobody could renew, or take over, while it lasted."""
    outages = [fault for fault in evidence.history.faults if not fault.workers]
    latencies = []
    for lease in taken_over(evidence):
        if lease.finished_at is None:
            continue
        renewed_at = lease.expires_at - lease.lease_seconds
        back = [fault.healed_at for fault in outages if fault.began_at <= lease.expires_at]
        latencies.append(lease.finished_at - max([renewed_at, *back]))
    return latencies


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of them does not exceed."""
    if not ordered:
        return None
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
