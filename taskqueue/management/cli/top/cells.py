"""Text in cells of a terminal: how wide it is, cut and filled to a width."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category, east_asian_width

from taskqueue.management.cli.output import without_controls

BARS = "▁▂▃▄▅▆▇█"
GAP = 2
WIDEST, LEAST = 30, 8
"""Columns of a cell that is neither the first nor the last; of the first, in want of room."""


def width(text: str) -> int:
    """In columns: some characters take two, and some none."""
    return sum(map(_columns, text))


def fitted(text: str, columns: int) -> str:
    """The text without what would steer the terminal, cut to so many columns."""
    text = without_controls(" ".join(text.split()))
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for each in text:
        used += _columns(each)
        if used > columns - 1:
            break
        kept.append(each)
    return "".join(kept) + "…" if columns > 0 else ""


def filled(text: str, columns: int) -> str:
    """Cut, or with spaces up to so many columns."""
    text = fitted(text, columns)
    return text + " " * (columns - width(text))


def _columns(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in ("W", "F") else 1


def aligned(rows: Sequence[Sequence[str]], *, columns: int) -> list[str]:
    """Rows with their cells below each other.

    Where all is too wide, the first column gives way, then the last one.
    """
    if not rows:
        return []
    cells = [[" ".join(cell.split()) for cell in row] for row in rows]
    first, *others, last = (max(map(width, column)) for column in zip(*cells, strict=True))
    others = [min(each, WIDEST) for each in others]
    left = columns - sum(others) - GAP * (len(others) + 1)
    first = max(min(first, LEAST), min(first, left - min(last, columns // 4)))
    widths = [first, *others, last]
    gap = " " * GAP
    return [fitted_line(gap.join(map(filled, row, widths)), columns) for row in cells]


def fitted_line(line: str, columns: int) -> str:
    """A line whose spaces are meant, cut to so many columns."""
    line = line.rstrip()
    if width(line) <= columns:
        return line
    while line and width(line) > columns - 1:
        line = line[:-1]
    return f"{line}…" if columns > 0 else ""


def bars(figures: Sequence[int]) -> str:
    """Figures as a row of bars, the largest being the highest."""
    largest = max(figures, default=0)
    return "".join(
        BARS[-(-each * (len(BARS) - 1) // largest)] if largest else BARS[0] for each in figures
    )
