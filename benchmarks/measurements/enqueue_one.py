"""Enqueuing one task at a time, beside a raw INSERT of the same row."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import Bench
from benchmarks.processes import client


def measure(bench: Bench) -> Iterator[Figure]:
    """Each in a transaction of its own, by one process."""
    size = bench.size
    database = bench.postgresql
    arguments = (size.rounds, size.single_enqueues)
    with client("enqueue_one", *arguments, settings=database.settings) as process:
        rates = process.answer()
    yield Figure(
        what="enqueue one by one",
        unit="tasks/s",
        values=rates["enqueue"],
        against="raw INSERT, Django's cursor",
        counterparts=rates["raw"],
        target=AtLeast(0.8),
    )
