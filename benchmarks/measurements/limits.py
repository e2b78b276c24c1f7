"""Tasks under limits, compared with the same tasks without limits."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.cpu import Sampler
from benchmarks.figures import AtLeast, Figure
from benchmarks.harness import Bench, say
from benchmarks.measurements.workflows import Drained
from benchmarks.processes import Failed, client, worker

KEYS, AT_ONCE = 50, 2
WORKERS, SLOTS = 8, 8
LONGEST = 300.0
"""Seconds after which a run is taken to hang."""
SIDES = ("short_limited", "short")


def measure(bench: Bench) -> Iterator[Figure]:
    """Eight workers drain short tasks of fifty keys, two of each at once."""
    runs: dict[str, list[Drained]] = defaultdict(list)
    count = bench.size.bulk * 2
    for number in range(bench.size.rounds):
        for name in SIDES if number % 2 else reversed(SIDES):
            drained = _drain(bench, name, count)
            runs[name].append(drained)
            say(f"  round {number + 1}: {name}: {drained.rate:,.0f}/s {drained.microseconds}")
    yield Figure(
        what=f"{count:,} tasks of 5 ms, {KEYS} keys with {AT_ONCE} places, {WORKERS} workers",
        unit="tasks/s",
        values=[each.rate for each in runs["short_limited"]],
        against="without limits",
        counterparts=[each.rate for each in runs["short"]],
        target=AtLeast(0.8),
    )


def _drain(bench: Bench, name: str, count: int) -> Drained:
    database = bench.postgresql
    with client("enqueue_keys", name, count, KEYS, **database.where) as process:
        process.output()
    database.settle()
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                worker(
                    "--pool", "thread", "--concurrency", str(SLOTS), "--name", f"worker-{n}",
                    **database.where,
                )
            )
            for n in range(WORKERS)
        ]  # fmt: skip
        sampler = Sampler([each.pid for each in started], bench.server.pid or 0)
        stack.enter_context(sampler)
        # A worker that drains would leave while others have all places.
        ends_at = time.monotonic() + LONGEST
        while (number := database.succeeded()) < count:
            if time.monotonic() > ends_at:
                raise Failed(f"{number} of {count} tasks succeeded ({name}).")
            time.sleep(0.1)
        for each in started:
            each.terminate()
        for each in started:
            each.output()
    began, ended = database.worked()
    return Drained(rate=count / (ended - began), microseconds=sampler.microseconds(database))
