"""The verdict on a run: its row of the table, and what was wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LOST = frozenset({1, 8, 17})
DOUBLED = frozenset({3, 6, 10, 11, 12, 13, 16})
STALE = frozenset({4, 5})
"""The invariants of GUARANTEES.md that the columns of the table count; all are in the verdict."""


@dataclass(kw_only=True)
class Verdict:
    """One row of the table."""

    fault: str
    seed: int
    tasks: int = 0
    lost: int = 0
    doubled: int = 0
    stale: int = 0
    takeover_p50: float | None = None
    takeover_p99: float | None = None
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    skipped: str = ""
    note: str = ""
    """Figures of a fault of its own, for the line below its row."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else is worth knowing: answers to the client, errors that it saw, ends."""

    @property
    def is_good(self) -> bool:
        """Whether nothing was wrong."""
        return not self.problems

    def count(self, violations: Iterable[tuple[int, str]]) -> None:
        """Enter what the checker found, as numbers of invariants and texts."""
        numbers: Counter[int] = Counter()
        for number, text in violations:
            numbers[number] += 1
            if numbers[number] <= 5:
                self.problems.append(f"invariant {number}: {text}")
        for number, count in numbers.items():
            if count > 5:
                self.problems.append(f"invariant {number}: {count - 5} more")
        self.lost = sum(numbers[number] for number in LOST)
        self.doubled = sum(numbers[number] for number in DOUBLED)
        self.stale = sum(numbers[number] for number in STALE)

    def save(self, path: Path) -> None:
        """Write it where the command reads it."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> Verdict:
        """Read it."""
        return cls(**json.loads(path.read_text()))


HEADER = (
    f"{'fault':24} {'seed':>4} {'tasks':>6} {'lost':>5} {'doubled':>7} {'stale':>5}"
    f" {'p50':>6} {'p99':>6} {'took':>5}  verdict"
)


def row(verdict: Verdict) -> str:
    """The line of the table."""
    result = "skipped: " + verdict.skipped if verdict.skipped else "ok"
    if not verdict.is_good:
        result = f"{len(verdict.problems)} VIOLATIONS"
    return (
        f"{verdict.fault:24} {verdict.seed:>4} {verdict.tasks:>6} {verdict.lost:>5}"
        f" {verdict.doubled:>7} {verdict.stale:>5} {_seconds(verdict.takeover_p50):>6}"
        f" {_seconds(verdict.takeover_p99):>6} {verdict.seconds:>5.0f}  {result}"
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
