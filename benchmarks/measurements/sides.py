"""Clients that measure several ways to do one thing, by this code and by another commit's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmarks.harness import OURS, Bench, say
from benchmarks.processes import client

RAW = ("raw", "copy", "group")
"""Ways that this code alone knows."""


def client_rounds(
    bench: Bench, module: str, count: int, sides: Sequence[str]
) -> dict[tuple[str, str], list[float]]:
    """The rates of each commit's sides: one process of each a round."""
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(bench.size.rounds):
        for revision in bench.roots:
            database = bench.postgresql_of(revision)
            names = [side for side in sides if revision == OURS or side not in RAW]
            with client(module, count, *names, **database.where) as process:
                for side, rate in process.answer().items():
                    rates[revision, side].append(rate)
                    say(f"  round {number + 1}: {side}, {revision}: {rate:,.0f}/s")
    return rates
