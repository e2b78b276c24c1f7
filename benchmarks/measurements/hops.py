"""How long a chain takes from the end of one step to the start of the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median, quantiles

from benchmarks.figures import AtMost, Below, Figure
from benchmarks.harness import Bench, say
from benchmarks.processes import client, worker


def measure(bench: Bench) -> Iterator[Figure]:
    """An idle worker with the defaults; pick-ups by it stand between its chains.

    One of the two targets is enough: a slow host lengthens both.
    """
    rounds: dict[str, list[list[float]]] = defaultdict(list)
    for number in range(bench.size.rounds):
        database = bench.postgresql
        samples = max(10, bench.size.samples // bench.size.rounds)
        with (
            worker(**database.where),
            client("chain_hops", samples, **database.where) as process,
        ):
            for what, milliseconds in process.answer().items():
                rounds[what].append(milliseconds)
                say(f"  round {number + 1}: {what}: {median(milliseconds):.1f} ms")
    hops, pick_ups = rounds["hop"], rounds["pick-up"]
    count = sum(map(len, hops))
    halves = list(map(median, hops))
    yield Figure(what=f"hop of a chain, p50 of {count}", unit="ms", values=halves, target=Below(8))
    yield Figure(
        what="the same",
        unit="ms",
        values=halves,
        against="two pick-ups",
        counterparts=[2 * median(each) for each in pick_ups],
        target=AtMost(1.3),
    )
    every = quantiles([each for own in hops for each in own], n=100, method="inclusive")
    yield Figure(what=f"hop of a chain, p99 of {count}", unit="ms", values=[every[98]])
