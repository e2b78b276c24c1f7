"""Draining no-op tasks on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Above, Figure
from benchmarks.harness import Bench, say
from benchmarks.processes import worker

POOLS = ("process", "thread")


def measure(bench: Bench) -> Iterator[Figure]:
    """One worker with the defaults, in either pool."""
    database = bench.new_sqlite("drain")
    rates: dict[str, list[float]] = {pool: [] for pool in POOLS}
    for number in range(bench.size.rounds):
        for pool in POOLS:
            database.empty()
            database.fill(bench.size.sqlite_tasks)
            arguments = ("--drain", "--pool", pool)
            with worker(*arguments, settings=database.settings) as process:
                process.output()
            rates[pool].append(database.rate())
            say(f"  round {number + 1}: {pool}: {rates[pool][-1]:,.0f}/s")
    for pool in POOLS:
        yield Figure(
            what=f"drain on SQLite, one worker, {pool} pool",
            unit="tasks/s",
            values=rates[pool],
            target=Above(3_500),
        )
