"""How long an idle worker takes to start the body of a new task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median, quantiles

from benchmarks.databases import PostgreSQL, SQLite
from benchmarks.figures import Below, Figure
from benchmarks.harness import OURS, Bench, say
from benchmarks.processes import client, worker

PAUSE_POSTGRESQL = 0.2
PAUSE_SQLITE = 0.5
"""The longest seconds between two tasks; on SQLite twice a poll, to meet it at any moment."""
POLL_SQLITE_MS = 250


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
    """The samples of all rounds; each commit's worker has its turn in each."""
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    rounds = bench.size.rounds
    for number in range(rounds):
        for revision, database in databases.items():
            answer = _latencies(database, max(2, bench.size.samples // rounds), longest_pause)
            for since, milliseconds in answer.items():
                samples[revision, since] += milliseconds
            half = median(answer["commit"])
            say(f"  round {number + 1}: {name}, {revision}: {half:.1f} ms since the commit")
    for since in ("commit", "call"):
        # What the call itself takes is not the worker's: only the time since the commit is judged.
        for place, label in enumerate(("p50", "p99")):
            values = {
                revision: [_percentiles(samples[revision, since])[place]] for revision in databases
            }
            what = f"pick-up since the {since}, {name}, {label} of {len(samples[OURS, since])}"
            target = targets[place] if since == "commit" else None
            yield Figure(what=what, unit="ms", values=values[OURS], target=target)
            for other in bench.others:
                yield Figure(
                    what=what,
                    unit="ms",
                    values=values[OURS],
                    against=other,
                    counterparts=values[other],
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
