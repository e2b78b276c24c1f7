"""Workflows, beside the same tasks alone."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import OURS, Bench
from benchmarks.measurements.sides import client_rounds


def measure(bench: Bench) -> Iterator[Figure]:
    """Enqueue a group, one transaction by one process."""
    rates = client_rounds(bench, "enqueue_many", bench.size.bulk, ("enqueue", "group"))
    yield Figure(
        what=f"enqueue a group of {bench.size.bulk:,}",
        unit="tasks/s",
        values=rates[OURS, "group"],
        against="the same tasks in bulk",
        counterparts=rates[OURS, "enqueue"],
        target=AtLeast(0.5),
    )
