"""Enqueuing in bulk, beside the fastest raw ways to insert the same rows."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import Bench
from benchmarks.processes import client


def measure(bench: Bench) -> Iterator[Figure]:
    """One transaction each, by one process."""
    size = bench.size
    database = bench.postgresql
    with client("enqueue_many", size.rounds, size.bulk, settings=database.settings) as process:
        rates = process.answer()
    for side, against, target in (
        ("unnest", "raw unnest", AtLeast(1.0)),
        ("copy", "raw COPY", None),
    ):
        yield Figure(
            what=f"enqueue {size.bulk:,} in bulk",
            unit="tasks/s",
            values=rates["enqueue"],
            against=against,
            counterparts=rates[side],
            target=target,
        )
