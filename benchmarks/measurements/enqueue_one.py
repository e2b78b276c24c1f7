"""Enqueuing one task at a time, beside a raw INSERT of the same row."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import OURS, Bench
from benchmarks.measurements.sides import client_rounds

SIDES = {"enqueue": "enqueue one by one", "framework": "the same through django.tasks"}


def measure(bench: Bench) -> Iterator[Figure]:
    """Each in a transaction of its own, by one process."""
    rates = client_rounds(bench, "enqueue_one", bench.size.single_enqueues, ("raw", *SIDES))
    for side, what in SIDES.items():
        yield Figure(
            what=what,
            unit="tasks/s",
            values=rates[OURS, side],
            against="raw INSERT, Django's cursor",
            counterparts=rates[OURS, "raw"],
            target=AtLeast(0.9) if side == "enqueue" else None,
        )
        for other in bench.others:
            yield Figure(
                what=what,
                unit="tasks/s",
                values=rates[OURS, side],
                against=other,
                counterparts=rates[other, side],
            )
