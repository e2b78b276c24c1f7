"""Whether a task under limits waits although everything that it needs is available."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.history import LeaseRow

LONGEST_WAIT = 5.0
AWAY = 2.0
"""Seconds after an outage in which workers come back."""
Span = tuple[float, float]


def nobody_waits_beside_a_place(evidence: Evidence) -> Iterator[Violation]:
    """No task waits for five seconds in which its limits have places and a worker has a slot.

    Unless those are served meanwhile who came before. The time in which the worker that had to wait
    least waited for a processor does not count.
    """
    waiting: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    needs: dict[str, Any] = {}
    for row in evidence.history.limited:
        task = evidence.tasks.get(row.task_id)
        if task is None:
            continue
        leases = evidence.leases.get(row.task_id)
        until = min((lease.claimed_at for lease in leases or ()), default=None)
        until = evidence.history.gathered_at if until is None else until
        if until - task.enqueued_at <= LONGEST_WAIT:
            continue
        names = [(limit["name"], limit["key"]) for limit in row.limits]
        key = f"{names} {row.sequence} {row.tags}"
        needs[key] = row
        waiting[key].append((row.task_id, task.enqueued_at, until))
    places, claims = Places(evidence), first_claims(evidence)
    for key, tasks in waiting.items():
        open_spans = gaps(places.blocked(needs[key]))
        for since, until in open_spans:
            if until - since <= LONGEST_WAIT:
                continue
            for task_id, enqueued_at, claimed_at in tasks:
                span = max(since, enqueued_at), min(until, claimed_at)
                if _length(span) <= LONGEST_WAIT:
                    continue
                began, ended = longest_pause(claims, enqueued_at, span)
                # Most pauses are short, and a busy host has thousands of stalls to look at.
                if ended - began <= LONGEST_WAIT:
                    continue
                kept = evidence.kept_from_workers(began, ended)
                if ended - began - kept > LONGEST_WAIT:
                    details = f"{ended - began:.1f} s from {began}, {kept:.1f} of them kept, {key}"
                    yield Violation(13, "A task waited beside a place.", task_id, details)
                    break


def first_claims(evidence: Evidence) -> list[Span]:
    """Return when each task was claimed first, and when it was enqueued; in order."""
    return sorted(
        (min(lease.claimed_at for lease in leases), evidence.tasks[task_id].enqueued_at)
        for task_id, leases in evidence.leases.items()
        if leases and task_id in evidence.tasks
    )


def longest_pause(claims: list[Span], enqueued_at: float, span: Span) -> Span:
    """Return the longest part of a span in which nobody was served who had come before.

    Where there is more to do than workers can claim, those who came first are served first.
    """
    since, until = span
    best, last = (since, since), since
    for index in range(bisect_left(claims, (since, 0.0)), len(claims)):
        at, came_at = claims[index]
        if at >= until:
            break
        if came_at <= enqueued_at:
            best = max(best, (last, at), key=_length)
            last = at
    return max(best, (last, until), key=_length) if until > last else best


def _length(span: Span) -> float:
    return span[1] - span[0]


class Places:
    """When limits, sequences and workers had nothing free."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._full: dict[tuple[str, str], list[Span]] = {}
        self._busy: dict[tuple[str, ...], list[Span]] = {}
        self._leases: dict[tuple[str, str], list[LeaseRow]] = defaultdict(list)
        self._held: dict[str, list[Span]] = defaultdict(list)
        for row in evidence.history.limited:
            leases = evidence.leases.get(row.task_id, [])
            for limit in row.limits:
                self._leases[limit["name"], limit["key"]] += leases
            if row.sequence and leases:
                task = evidence.tasks[row.task_id]
                began = min(lease.claimed_at for lease in leases)
                self._held[row.sequence].append((began, task.finished_at or math.inf))

    def blocked(self, row: Any) -> list[Span]:
        """Return the spans in which a task like this one could not start."""
        spans = [*self._busy_spans(tuple(row.tags)), *self._held[row.sequence]]
        for limit in row.limits:
            key = limit["name"], limit["key"]
            if key not in self._full:
                self._full[key] = self._full_spans(key, limit)
            spans += self._full[key]
        return spans

    def _full_spans(self, key: tuple[str, str], limit: dict[str, Any]) -> list[Span]:
        leases = sorted(self._leases[key], key=lambda lease: lease.claimed_at)
        changes = [each for each in self._evidence.history.limit_changes if each.name == key[0]]
        numbers = [each.number for each in changes if each.number is not None]
        if "rate" in limit:
            window = limit["seconds"]
            number = max(1, math.ceil(0.9 * min([limit["rate"], *numbers])))
            starts = [lease.claimed_at for lease in leases]
            pairs = zip(starts, starts[number - 1 :], strict=False)
            return [(last, last + 1.1 * window) for first, last in pairs if last - first <= window]
        # As long as the smallest number that may hold is taken.
        events = [(change.asked_at, "n", change) for change in changes]
        events += [(change.answered_at, "a", change) for change in changes]
        steps: list[tuple[float, str, Any]] = [(lease.claimed_at, "+", None) for lease in leases]
        steps += [(lease.finished_at or math.inf, "-", None) for lease in leases]
        running, old = 0, limit["concurrency"]
        current = {old}
        spans, began = [], None
        for at, what, change in sorted([*steps, *events], key=lambda step: step[:2]):
            running += {"+": 1, "-": -1}.get(what, 0)
            if change is not None:
                new = limit["concurrency"] if change.number is None else change.number
                current = {*current, new} if what == "n" else {new}
            is_full = running >= min(current)
            if is_full and began is None:
                began = at
            elif not is_full and began is not None:
                spans.append((began, at))
                began = None
        if began is not None:
            spans.append((began, math.inf))
        return spans

    def _busy_spans(self, tags: tuple[str, ...]) -> list[Span]:
        """Return when no worker with these tags had a free slot."""
        if tags not in self._busy:
            self._busy[tags] = list(self._find_busy(tags))
        return self._busy[tags]

    def _find_busy(self, tags: tuple[str, ...]) -> Iterator[Span]:
        history = self._evidence.history
        rows = [row for row in history.serving if set(tags) <= set(row.tags)]
        deaths = {death.worker_name: death.at for death in history.deaths}
        outages = [(fault.began_at, fault.healed_at + AWAY) for fault in history.faults
                   if not fault.workers]  # fmt: skip
        slots = {row.name: row.slots for row in rows}
        steps: list[tuple[float, str, int, int]] = []
        for row in rows:
            ends = [end for end in (row.until, deaths.get(row.name)) if end is not None]
            away = [(fault.began_at, fault.healed_at) for fault in history.faults
                    if row.name in fault.workers]  # fmt: skip
            away += [(-math.inf, row.since), (min(ends, default=math.inf), math.inf), *outages]
            for since, until in away:
                steps += [(since, row.name, 0, 1), (until, row.name, 0, -1)]
        for leases in self._evidence.leases.values():
            for lease in leases:
                if lease.worker_name in slots:
                    steps.append((lease.claimed_at, lease.worker_name, 1, 0))
                    steps.append((lease.finished_at or math.inf, lease.worker_name, -1, 0))
        taken: dict[str, int] = defaultdict(int)
        away_of: dict[str, int] = defaultdict(int)
        free_of = dict.fromkeys(slots, 0)
        free, began = 0, -math.inf
        is_busy = True
        for at, name, lease_step, away_step in sorted(steps):
            taken[name] += lease_step
            away_of[name] += away_step
            now = 0 if away_of[name] else max(0, slots[name] - taken[name])
            free += now - free_of[name]
            free_of[name] = now
            if (free <= 0) != is_busy:
                if is_busy:
                    yield began, at
                began, is_busy = at, not is_busy
        if is_busy:
            yield began, math.inf


def gaps(spans: Iterable[Span]) -> Sequence[Span]:
    """Return what lies between spans."""
    found, reached = [], -math.inf
    for since, until in sorted(spans):
        if since > reached:
            found.append((reached, since))
        reached = max(reached, until)
    if reached < math.inf:
        found.append((reached, math.inf))
    return found
