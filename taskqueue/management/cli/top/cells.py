"""Text in terminal columns: its width, cut and padded."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import category, east_asian_width

from taskqueue.management.cli.output import without_controls

BARS = "▁▂▃▄▅▆▇█"
GAP = 2
WIDEST, LEAST = 30, 8
"""Width of the middle cells at most; of the first cell, where room is scarce, at least."""


def width(text: str) -> int:
    """Return the width in columns: some characters take two, some none."""
    return sum(map(_columns, text))


def fitted(text: str, columns: int) -> str:
    """Return the text without control characters, cut to a width."""
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
    """Return the text, cut or padded to a width."""
    text = fitted(text, columns)
    return text + " " * (columns - width(text))


def _columns(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in ("W", "F") else 1


def aligned(rows: Sequence[Sequence[str]], *, columns: int) -> list[str]:
    """Return rows with aligned cells.

    Where they are too wide, the first column is cut, then the last one.
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
    """Return a line with its spaces, cut to a width."""
    line = line.rstrip()
    if width(line) <= columns:
        return line
    while line and width(line) > columns - 1:
        line = line[:-1]
    return f"{line}…" if columns > 0 else ""


def bars(figures: Sequence[int]) -> str:
    """Return numbers as a row of bars, the largest as the highest."""
    largest = max(figures, default=0)
    return "".join(
        BARS[-(-each * (len(BARS) - 1) // largest)] if largest else BARS[0] for each in figures
    )
