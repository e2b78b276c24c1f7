"""Enqueuing in bulk, compared with the engine's own COPY of prepared rows."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import OURS, Bench
from benchmarks.measurements.sides import client_rounds


def measure(bench: Bench) -> Iterator[Figure]:
    """One transaction each, by one process; the ratio of each turn to the COPY beside it."""
    sides = {
        "enqueue": f"enqueue {bench.size.bulk:,} in bulk",
        "framework": "the same through django.tasks",
    }
    sizes = bench.size.bulk, bench.size.bulk_turns
    rates = client_rounds(bench, "enqueue_many", ("copy", *sides), *sizes).rates
    for side, what in sides.items():
        yield Figure(
            what=what,
            unit="tasks/s",
            values=rates[OURS, side],
            against="COPY of ready rows",
            counterparts=rates[OURS, "copy"],
            target=AtLeast(0.85) if side == "enqueue" else None,
        )
        for other in bench.others:
            yield Figure(
                what=what,
                unit="tasks/s",
                values=rates[OURS, side],
                against=other,
                counterparts=rates[other, side],
            )
