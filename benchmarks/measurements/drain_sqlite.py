"""Draining no-op tasks on SQLite."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from benchmarks.figures import Above, AtLeast, Figure
from benchmarks.harness import OURS, Bench, in_turn, say
from benchmarks.processes import worker
from benchmarks.revision import BASELINE

POOLS = ("process", "thread")


def measure(bench: Bench) -> Iterator[Figure]:
    """One worker with the defaults, in either pool."""
    databases = {revision: bench.new_sqlite("drain", revision) for revision in bench.roots}
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(bench.size.rounds):
        for pool in POOLS:
            for revision, database in in_turn(databases.items(), number):
                database.empty()
                database.fill(bench.size.sqlite_tasks)
                with worker("--drain", "--pool", pool, **database.where) as process:
                    process.output()
                rates[revision, pool].append(database.rate())
                rate = rates[revision, pool][-1]
                say(f"  round {number + 1}: {pool}, {revision}: {rate:,.0f}/s")
    for pool in POOLS:
        what, values = f"drain on SQLite, one worker, {pool} pool", rates[OURS, pool]
        yield Figure(what=what, unit="tasks/s", values=values, target=Above(3_500))
        for other in bench.others:
            yield Figure(
                what=what,
                unit="tasks/s",
                values=values,
                against=other,
                counterparts=rates[other, pool],
                target=AtLeast(1.7) if other == BASELINE and pool == "process" else None,
            )
