"""Invariant 12, for batches: each collected event is in exactly one, with its group only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.batch_bodies import MOST
from tests.chaos.checker.evidence import Evidence, Violation


def events_are_in_one_batch(evidence: Evidence) -> Iterator[Violation]:
    """12: a batch holds each collected row once, and no row that was rolled back."""
    history = evidence.history
    in_batches = Counter(number for batch in history.batches for number, _ in batch.events)
    waiting = Counter(history.collected)
    for event in history.events:
        found = in_batches[event.number] + waiting[event.number]
        least, most = (1, 1) if event.state == "ok" else (0, 0 if event.state == "failed" else 1)
        if not least <= found <= most:
            details = (
                f"{in_batches[event.number]} batches, {waiting[event.number]} waiting: {event}"
            )
            yield Violation(12, "An event is lost, or in several batches.", "", details)
    for batch in history.batches:
        groups = {group for _, group in batch.events}
        if len(groups) != 1 or len(batch.events) > MOST:
            details = f"{len(batch.events)} events of {sorted(groups)}"
            yield Violation(
                12, "A batch is too large, or of several groups.", batch.task_id, details
            )
