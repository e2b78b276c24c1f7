"""Draining tasks whose bodies are coroutines, compared with those of ordinary functions."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import Bench
from benchmarks.measurements.drain import Side, in_rounds


def measure(bench: Bench) -> Iterator[Figure]:
    """One worker with the defaults, no-op bodies of either kind."""
    ordinary, coroutine = Side("process", 1), Side("process", 1, task="noop_async")
    runs = in_rounds(bench, [ordinary, coroutine])
    yield Figure(
        what="drain of async def bodies, one worker, process pool",
        unit="tasks/s",
        values=[each.rate for each in runs[coroutine]],
        against="def bodies",
        counterparts=[each.rate for each in runs[ordinary]],
        target=AtLeast(0.8),
    )
