"""How long an idle worker takes to start the body of a new task."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import quantiles

from benchmarks.databases import PostgreSQL, SQLite
from benchmarks.figures import Below, Figure
from benchmarks.harness import OURS, Bench, in_turn, say
from benchmarks.processes import client, worker

PAUSE_POSTGRESQL = 0.2
PAUSE_SQLITE = 0.5
"""The longest seconds between two tasks; on SQLite twice a poll, to meet it at any moment."""
POLL_SQLITE_MS = 250
SETTLING = 2.0
"""Seconds for what ran before to come to rest, before another worker has its turn."""
LABELS = ("p50", "p99")


def measure(bench: Bench) -> Iterator[Figure]:
    """One worker with the defaults; the client and it read the same host's clock."""
    postgresql = {revision: bench.postgresql_of(revision) for revision in bench.roots}
    yield from _compared("PostgreSQL", postgresql, bench, PAUSE_POSTGRESQL, (Below(3), Below(10)))
    poll = Below(POLL_SQLITE_MS)
    sqlite = {revision: bench.new_sqlite("pick-up", revision) for revision in bench.roots}
    yield from _compared("SQLite", sqlite, bench, PAUSE_SQLITE, (poll, poll))


def _compared(
    name: str,
    databases: Mapping[str, PostgreSQL | SQLite],
    bench: Bench,
    longest_pause: float,
    targets: tuple[Below, Below],
) -> Iterator[Figure]:
    """A value for each round; each commit's worker has its turn in each, on an idle host."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    samples = bench.size.samples
    for number in range(bench.size.rounds):
        for revision, database in in_turn(databases.items(), number):
            time.sleep(SETTLING)
            for since, milliseconds in _latencies(database, samples, longest_pause).items():
                for label, value in zip(LABELS, _percentiles(milliseconds), strict=True):
                    found[revision, since, label].append(value)
            half = found[revision, "commit", LABELS[0]][-1]
            say(f"  round {number + 1}: {name}, {revision}: {half:.1f} ms since the commit")
    for since in ("commit", "call"):
        # What the call itself takes is not the worker's: only the time since the commit is judged.
        for label, target in zip(LABELS, targets, strict=True):
            what = f"pick-up since the {since}, {name}, {label} of {samples} a round"
            values = found[OURS, since, label]
            judged = target if since == "commit" else None
            yield Figure(what=what, unit="ms", values=values, target=judged)
            for other in bench.others:
                yield Figure(
                    what=what,
                    unit="ms",
                    values=values,
                    against=other,
                    counterparts=found[other, since, label],
                )


def _latencies(
    database: PostgreSQL | SQLite, samples: int, longest_pause: float
) -> dict[str, list[float]]:
    with (
        worker(**database.where),
        client("enqueue_moments", samples, longest_pause, **database.where) as process,
    ):
        answer: dict[str, list[float]] = process.answer()
    return answer


def _percentiles(samples: list[float]) -> tuple[float, float]:
    cuts = quantiles(samples, n=100, method="inclusive")
    return cuts[49], cuts[98]
