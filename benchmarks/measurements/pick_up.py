"""How long an idle worker takes to start the body of a new task."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import quantiles

from benchmarks.databases import PostgreSQL, SQLite
from benchmarks.figures import Below, Figure
from benchmarks.harness import Bench
from benchmarks.processes import client, worker

PAUSE_POSTGRESQL = 0.2
PAUSE_SQLITE = 0.5
"""The longest seconds between two tasks; on SQLite twice a poll, to meet it at any moment."""
POLL_SQLITE_MS = 250


def measure(bench: Bench) -> Iterator[Figure]:
    """One worker with the defaults; the client and it read the same host's clock."""
    samples = bench.size.samples
    yield from _figures(
        "PostgreSQL", _latencies(bench.postgresql, samples, PAUSE_POSTGRESQL), Below(3), Below(10)
    )
    poll = Below(POLL_SQLITE_MS)
    sqlite = bench.new_sqlite("pick-up")
    yield from _figures("SQLite", _latencies(sqlite, samples, PAUSE_SQLITE), poll, poll)


def _latencies(
    database: PostgreSQL | SQLite, samples: int, longest_pause: float
) -> dict[str, list[float]]:
    with worker(settings=database.settings):
        arguments = (samples, longest_pause)
        with client("enqueue_moments", *arguments, settings=database.settings) as process:
            answer: dict[str, list[float]] = process.answer()
    return answer


def _figures(
    name: str, latencies: dict[str, list[float]], p50: Below, p99: Below
) -> Iterator[Figure]:
    for since, samples in latencies.items():
        # What the call itself takes is not the worker's: only the time since the commit is judged.
        is_judged = since == "commit"
        cuts = quantiles(samples, n=100, method="inclusive")
        for label, value, target in (("p50", cuts[49], p50), ("p99", cuts[98], p99)):
            yield Figure(
                what=f"pick-up since the {since}, {name}, {label} of {len(samples)}",
                unit="ms",
                values=[value],
                target=target if is_judged else None,
            )
