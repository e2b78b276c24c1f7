"""Clients that measure several ways to do one thing, with this code and with another commit's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.harness import OURS, Bench, in_turn, say
from benchmarks.processes import client

RAW = ("raw", "procedure", "copy", "group")
"""Ways that this code alone knows."""


@dataclass
class Measured:
    """The values of each commit's sides, one for each turn of each round."""

    rates: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """Tasks a second."""
    processor: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """The client's microseconds of processor time for each task."""

    def microseconds(self, side: tuple[str, str]) -> list[float]:
        """Those of the clock on the wall for each task."""
        return [1e6 / rate for rate in self.rates[side]]


def client_rounds(bench: Bench, module: str, sides: Sequence[str], *arguments: int) -> Measured:
    """Measure each commit's sides: one process of each commit a round."""
    measured = Measured()
    for number in range(bench.size.rounds):
        for revision in in_turn(bench.roots, number):
            database = bench.postgresql_of(revision)
            names = [side for side in sides if revision == OURS or side not in RAW]
            with client(module, *arguments, *in_turn(names, number), **database.where) as process:
                for side, turns in process.answer().items():
                    rates = [turn["rate"] for turn in turns]
                    measured.rates[revision, side] += rates
                    measured.processor[revision, side] += [
                        1e6 * turn["processor"] for turn in turns
                    ]
                    say(f"  round {number + 1}: {side}, {revision}: {median(rates):,.0f}/s")
    return measured


def rate_of(module: str, side: str, *arguments: int, **where: Any) -> float:
    """The median of the turns of one side, measured by a client of its own."""
    with client(module, *arguments, side, **where) as process:
        rates: list[float] = [turn["rate"] for turn in process.answer()[side]]
        return median(rates)
