"""Whether tenants share a queue evenly, and whether limits of queues hold."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.limit_rows import LimitChange

MOST_AHEAD = 60
"""Starts by which a tenant may be ahead of another while both have work.

Each of several workers may skip the partition of a tenant that another one holds, and take of the
others what it wants.
"""
UNDER_WAY = 0.5
"""Seconds: a claim that was under way when its queue was limited knows nothing of it."""
PREFIX = "queue:"


def tenants_share_evenly(evidence: Evidence) -> Iterator[Violation]:
    """Tenants of equal weight start about as many tasks while both have some that wait."""
    events: list[tuple[float, int, str]] = []
    for row in evidence.history.limited:
        task = evidence.tasks.get(row.task_id)
        if row.tenant and task is not None:
            events.append((task.enqueued_at, 0, row.tenant))
            leases = evidence.leases.get(row.task_id, [])
            events += [
                (lease.claimed_at, 2 if number else 1, row.tenant)
                for number, lease in enumerate(sorted(leases, key=lambda each: each.claimed_at))
            ]
    waiting: Counter[str] = Counter()
    ahead: dict[str, Counter[str]] = defaultdict(Counter)
    for at, what, tenant in sorted(events):
        if what == 0:
            waiting[tenant] += 1
            continue
        for other in [other for other, number in waiting.items() if number and other != tenant]:
            ahead[tenant][other] += 1
            ahead[other][tenant] -= 1
            if ahead[tenant][other] > MOST_AHEAD:
                details = f"{tenant} is {ahead[tenant][other]} ahead of {other} at {at}"
                yield Violation(13, "A tenant went before another one.", tenant, details)
                return
        if what == 1:  # Later attempts are of tasks that are no longer counted.
            waiting[tenant] -= 1
            if not waiting[tenant]:  # Whoever has nothing that waits earns no credit.
                for other in ahead.pop(tenant, {}):
                    ahead[other].pop(tenant, None)


def limits_of_queues_hold(evidence: Evidence) -> Iterator[Violation]:
    """Of what is claimed after a queue was limited no more run at once."""
    changes: dict[str, list[LimitChange]] = defaultdict(list)
    for change in evidence.history.limit_changes:
        if change.name.startswith(PREFIX):
            changes[change.name.removeprefix(PREFIX)].append(change)
    for queue_name, of_queue in changes.items():
        leases = [
            lease
            for task_id, found in evidence.leases.items()
            if task_id in evidence.tasks and evidence.tasks[task_id].queue_name == queue_name
            for lease in found
        ]
        for change, until in zip(of_queue, [*of_queue[1:], None], strict=True):
            if change.number is None:
                continue
            since = change.answered_at + UNDER_WAY
            ends_at = math.inf if until is None else until.asked_at
            own = [lease for lease in leases if since < lease.claimed_at < ends_at]
            ends = sorted(lease.finished_at for lease in own if lease.finished_at is not None)
            starts = sorted(lease.claimed_at for lease in own)
            for at in starts:
                running = bisect_right(starts, at) - bisect_right(ends, at)
                if running > change.number:
                    details = f"{running} of {change.number}, {at}"
                    yield Violation(13, "More run in a queue than its limit.", queue_name, details)
                    return
