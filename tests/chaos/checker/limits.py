"""Invariant 13: limits by the leases' own times, sequences, and no task that waits in vain."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.chaos.checker.evidence import Evidence, Violation, is_finished
from tests.chaos.checker.limit_waits import nobody_waits_beside_a_place
from tests.chaos.checker.shares import limits_of_queues_hold, tenants_share_evenly
from tests.chaos.history import LeaseRow
from tests.chaos.limit_rows import LimitedRow

AT_ONCE = 0.005
"""Seconds by which a number that was changed may hold longer: clocks have milliseconds."""


def limits_hold(evidence: Evidence) -> Iterator[Violation]:
    """13: at no instant more under a limiter, in no window more starts, sequences in order."""
    by_limiter: dict[tuple[str, str], list[LeaseRow]] = defaultdict(list)
    bounds: dict[tuple[str, str], dict[str, Any]] = {}
    sequences: dict[str, list[LimitedRow]] = defaultdict(list)
    for row in evidence.history.limited:
        for limit in row.limits:
            key = limit["name"], limit["key"]
            bounds[key] = limit
            by_limiter[key] += evidence.leases.get(row.task_id, [])
        if row.sequence:
            sequences[row.sequence].append(row)
    for key, leases in by_limiter.items():
        leases.sort(key=lambda lease: lease.claimed_at)
        if "concurrency" in bounds[key]:
            yield from _too_many(evidence, key, bounds[key]["concurrency"], leases)
            yield from _too_many_bodies(evidence, key, bounds[key]["concurrency"], leases)
        if "rate" in bounds[key]:
            yield from _too_fast(evidence, key, bounds[key], leases)
    for name, rows in sequences.items():
        yield from _out_of_order(evidence, name, rows)
    for left in evidence.history.left_of_limits:
        if left.number:
            yield Violation(13, "Something of limits is left.", "", f"{left.number} {left.what}")
    if evidence.history.limit_repairs:
        details = str(evidence.history.limit_repairs)
        yield Violation(13, "A sweep had to open partitions.", "", details)
    yield from nobody_waits_beside_a_place(evidence)
    yield from tenants_share_evenly(evidence)
    yield from limits_of_queues_hold(evidence)


def numbers_at(
    evidence: Evidence, name: str, declared: int, since: float, until: float
) -> set[int]:
    """Return the numbers that may have held for a limit at some moment of a span."""
    changes = [each for each in evidence.history.limit_changes if each.name == name]
    found = set()
    before, from_when = declared, -math.inf
    for change in changes:
        if from_when <= until and change.answered_at >= since:
            found.add(before)
        before = declared if change.number is None else change.number
        from_when = change.asked_at
    if from_when <= until:
        found.add(before)
    return found


def _too_many(
    evidence: Evidence, key: tuple[str, str], declared: int, leases: list[LeaseRow]
) -> Iterator[Violation]:
    """Lowering a limit stops nobody, so that it is asked whenever somebody starts."""
    ends = sorted(lease.finished_at for lease in leases if lease.finished_at is not None)
    starts = [lease.claimed_at for lease in leases]
    for at in dict.fromkeys(starts):
        running = bisect_right(starts, at) - bisect_right(ends, at)
        most = max(numbers_at(evidence, key[0], declared, at - AT_ONCE, at + AT_ONCE))
        if running > most:
            yield Violation(
                13, "More run under a limit than it allows.", str(key), f"{running} of {most}, {at}"
            )
            return


def _too_many_bodies(
    evidence: Evidence, key: tuple[str, str], declared: int, leases: list[LeaseRow]
) -> Iterator[Violation]:
    """The same of bodies that say when they began and ended, by the host's clock."""
    changes = [each.number for each in evidence.history.limit_changes if each.name == key[0]]
    most = max([declared, *(number for number in changes if number is not None)])
    attempts = {(lease.task_id, lease.attempt) for lease in leases}
    found: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for line in evidence.history.lines:
        if (line.task_id, line.attempt) in attempts:
            found[line.task_id, line.attempt][line.text] = line.at
    events: list[tuple[float, int]] = []
    for marks in found.values():
        if "start" in marks and "end" in marks:
            events += [(marks["start"], 1), (marks["end"], -1)]
    number = 0
    for at, step in sorted(events):
        number += step
        if number > most:
            details = f"{number} of {most}, {at}"
            yield Violation(13, "More bodies run under a limit than it allows.", str(key), details)
            return


def _too_fast(
    evidence: Evidence, key: tuple[str, str], limit: dict[str, Any], leases: list[LeaseRow]
) -> Iterator[Violation]:
    starts = [lease.claimed_at for lease in leases]
    window = limit["seconds"]
    for first, at in enumerate(starts):
        number = bisect_left(starts, at + window - evidence.bounds.clock) - first
        most = max(numbers_at(evidence, key[0], limit["rate"], at, at + window))
        if number > most:
            details = f"{number} of {most} in {window:g} s from {at}"
            yield Violation(13, "More start in a window than the rate allows.", str(key), details)
            return


def _out_of_order(evidence: Evidence, name: str, rows: list[LimitedRow]) -> Iterator[Violation]:
    """One task after the other, each when the one before has ended for good."""
    tasks = [evidence.tasks[row.task_id] for row in rows if row.task_id in evidence.tasks]
    tasks.sort(key=lambda task: (task.enqueued_at, task.id))
    for before, after in pairwise(tasks):
        leases = evidence.leases.get(after.id)
        if not leases:
            continue
        began = min(lease.claimed_at for lease in leases)
        has_ended = is_finished(before.status) and before.finished_at is not None
        if not has_ended or (before.finished_at or 0.0) > began + evidence.bounds.clock:
            details = f"{after.id} began at {began}, {before.id} ended at {before.finished_at}"
            yield Violation(13, "A sequence is out of order.", name, details)
            return
