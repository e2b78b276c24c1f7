"""Clients that measure several ways to do one thing, by this code and by another commit's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.harness import OURS, Bench, in_turn, say
from benchmarks.processes import client

RAW = ("raw", "procedure", "copy", "group")
"""Ways that this code alone knows."""


@dataclass
class Measured:
    """The values of each commit's sides, one for each round."""

    rates: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """Tasks a second."""
    processor: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    """The client's microseconds of processor time for each task."""

    def microseconds(self, side: tuple[str, str]) -> list[float]:
        """Those of the clock on the wall for each task."""
        return [1e6 / rate for rate in self.rates[side]]


def client_rounds(bench: Bench, module: str, count: int, sides: Sequence[str]) -> Measured:
    """Measure each commit's sides: one process of each commit a round."""
    measured = Measured()
    for number in range(bench.size.rounds):
        for revision in in_turn(bench.roots, number):
            database = bench.postgresql_of(revision)
            names = [side for side in sides if revision == OURS or side not in RAW]
            with client(module, count, *in_turn(names, number), **database.where) as process:
                for side, found in process.answer().items():
                    measured.rates[revision, side].append(found["rate"])
                    measured.processor[revision, side].append(1e6 * found["processor"])
                    say(f"  round {number + 1}: {side}, {revision}: {found['rate']:,.0f}/s")
    return measured
