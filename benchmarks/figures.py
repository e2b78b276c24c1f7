"""Measured figures, the figures that they are compared with, and the table of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class AtLeast:
    """The ratio to the counterpart has to reach this."""

    limit: float

    def is_reached(self, figure: Figure) -> bool | None:
        """Whether it does; None without a counterpart."""
        return None if figure.ratio is None else figure.ratio >= self.limit

    def __str__(self) -> str:
        return f"ratio >= {self.limit:g}"


@dataclass(frozen=True)
class AtMost:
    """The ratio to the counterpart may not be higher than this."""

    limit: float

    def is_reached(self, figure: Figure) -> bool | None:
        """Whether it is not; None without a counterpart."""
        return None if figure.ratio is None else figure.ratio <= self.limit

    def __str__(self) -> str:
        return f"ratio <= {self.limit:g}"


@dataclass(frozen=True)
class Above:
    """The figure itself has to reach this."""

    limit: float

    def is_reached(self, figure: Figure) -> bool:
        """Whether it does."""
        return figure.measured >= self.limit

    def __str__(self) -> str:
        return f">= {self.limit:,g}"


@dataclass(frozen=True)
class Below:
    """The figure itself may not be higher than this."""

    limit: float

    def is_reached(self, figure: Figure) -> bool:
        """Whether it is not."""
        return figure.measured <= self.limit

    def __str__(self) -> str:
        return f"<= {self.limit:,g}"


Target = AtLeast | AtMost | Above | Below


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line: a value a round, and its counterpart of the same round."""

    what: str
    unit: str
    values: Sequence[float]
    against: str = ""
    counterparts: Sequence[float] = ()
    target: Target | None = None

    @property
    def measured(self) -> float:
        """The median over all rounds."""
        return median(self.values)

    @property
    def ratios(self) -> list[float]:
        """The ratio of each round: both sides of it met the same load of the machine."""
        return [a / b for a, b in zip(self.values, self.counterparts, strict=bool(self.against))]

    @property
    def ratio(self) -> float | None:
        """The median of the rounds' ratios."""
        return median(self.ratios) if self.against else None

    @property
    def is_reached(self) -> bool | None:
        """Whether the target is; None where there is none."""
        return self.target.is_reached(self) if self.target else None

    def as_json(self) -> dict[str, Any]:
        """All that is known of it."""
        return {
            "what": self.what,
            "unit": self.unit,
            "measured": self.measured,
            "values": list(self.values),
            "against": self.against,
            "counterparts": list(self.counterparts),
            "ratio": self.ratio,
            "ratios": self.ratios if self.against else [],
            "target": str(self.target) if self.target else None,
            "reached": self.is_reached,
        }


HEADINGS = ("what", "measured", "min - max", "counterpart", "ratio", "target", "reached")
ANSWERS = {True: "yes", False: "NO", None: ""}


def table(figures: Sequence[Figure]) -> str:
    """The figures as aligned text."""
    rows = [HEADINGS, *map(_cells, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    rows.insert(1, tuple("-" * width for width in widths))
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def _cells(figure: Figure) -> tuple[str, ...]:
    counterpart = ratio = ""
    if figure.against:
        counterpart = f"{_number(median(figure.counterparts))} {figure.against}"
        ratio = f"{figure.ratio:.2f} ({min(figure.ratios):.2f}-{max(figure.ratios):.2f})"
    return (
        figure.what,
        f"{_number(figure.measured)} {figure.unit}",
        f"{_number(min(figure.values))} - {_number(max(figure.values))}",
        counterpart,
        ratio,
        str(figure.target or ""),
        ANSWERS[figure.is_reached],
    )


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 or not value else f"{value:.1e}"
