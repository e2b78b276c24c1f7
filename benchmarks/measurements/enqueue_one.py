"""Enqueuing one task at a time, compared with a raw INSERT of the same row."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import AtLeast, Below, Figure
from benchmarks.harness import OURS, Bench
from benchmarks.measurements.sides import Measured, client_rounds

SIDES = {"enqueue": "enqueue one by one", "framework": "the same through django.tasks"}
COUNTERPARTS = {
    "raw": "raw INSERT, Django's cursor",
    "procedure": "the same INSERT by a procedure",
}
BESIDE_INSERT, PYTHON = Below(70), Below(50)
"""Microseconds that an enqueue may take beside the INSERT, in the server and in Python."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Each in a transaction of its own, by one process."""
    names = (*COUNTERPARTS, *SIDES)
    measured = client_rounds(bench, "enqueue_one", names, bench.size.single_enqueues)
    rates = measured.rates
    for side, what in SIDES.items():
        for raw, words in COUNTERPARTS.items():
            yield Figure(
                what=what,
                unit="tasks/s",
                values=rates[OURS, side],
                against=words,
                counterparts=rates[OURS, raw],
                target=AtLeast(0.9) if side == "enqueue" else None,
            )
        for other in bench.others:
            yield Figure(
                what=what,
                unit="tasks/s",
                values=rates[OURS, side],
                against=other,
                counterparts=rates[other, side],
            )
    yield from _budgets(measured)


def _budgets(measured: Measured) -> Iterator[Figure]:
    """The time of an enqueue beyond that of the raw INSERT in the same round."""
    ours, raw = (OURS, "enqueue"), (OURS, "raw")
    python = _more(measured.processor[ours], measured.processor[raw])
    whole = _more(measured.microseconds(ours), measured.microseconds(raw))
    # The arrival, the look for workers that sleep, and what comes back.
    beside = _more(whole, python)
    yield Figure(
        what="an enqueue beside the INSERT, Python", unit="µs", values=python, target=PYTHON
    )
    yield Figure(
        what="an enqueue beside the INSERT, the rest",
        unit="µs",
        values=beside,
        target=BESIDE_INSERT,
    )


def _more(ones: list[float], others: list[float]) -> list[float]:
    return [one - other for one, other in zip(ones, others, strict=True)]
