"""Values as text for people, and text in columns of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from unicodedata import category, east_asian_width

BARS = "▁▂▃▄▅▆▇█"
GAP = "  "
# Columns of a cell before it is cut.
WIDEST = 60
# In a limited width: the most columns of a middle cell, and the fewest of the first cell.
WIDEST_BETWEEN, LEAST = 30, 8


def without_controls(text: str) -> str:
    """Replace control characters: text from users must not steer the terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def one_line(text: str) -> str:
    """Return the text on one line, whole."""
    return without_controls(" ".join(text.split()))


def width(text: str) -> int:
    """Return the width in columns: some characters take two, some none."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in ("W", "F") else 1


def fitted(text: str, columns: int) -> str:
    """Return the text, cut to a width."""
    if width(text) <= columns:
        return text
    while text and width(text) > columns - 1:
        text = text[:-1]
    return f"{text}…" if columns > 0 else ""


def filled(text: str, columns: int) -> str:
    """Return the text, cut or padded to a width."""
    text = fitted(text, columns)
    return text + " " * (columns - width(text))


def aligned(lines: Sequence[Sequence[str]], *, columns: int | None = None) -> list[str]:
    """Return lines of cells, each column as wide as its widest cell; a line may have fewer cells.

    Long cells are shortened, except the last. If `columns` is too narrow, the first one is
    shortened, then the last.
    """
    cells = [list(map(one_line, line)) for line in lines]
    *widths, last = (max(map(width, column)) for column in zip_longest(*cells, fillvalue=""))
    if columns is None:
        widths = [min(cell, WIDEST) for cell in widths]
    else:
        first, *others = widths
        others = [min(cell, WIDEST_BETWEEN) for cell in others]
        left = columns - sum(others) - len(GAP) * len(widths)
        widths = [max(min(first, LEAST), min(first, left - min(last, columns // 4))), *others]
    rows = [GAP.join(map(filled, line, [*widths, last])).rstrip() for line in cells]
    return rows if columns is None else [fitted(row, columns) for row in rows]


def bars(figures: Sequence[int]) -> str:
    """Return numbers as a row of bars, the largest as the highest."""
    largest = max(figures, default=0) or 1
    return "".join(BARS[-(-figure * (len(BARS) - 1) // largest)] for figure in figures)


def size(octets: int | None) -> str:
    """Return a size such as `12 MB`; empty for None."""
    if octets is None:
        return ""
    number, unit = float(octets), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1024, larger
    return f"{number:.0f} {unit}" if unit == "B" or number >= 9.95 else f"{number:.1f} {unit}"


def utc(moment: datetime | None, *, timespec: str = "") -> str:
    """Return a time in UTC, without the zone, which the heading names.

    In seconds, or finer if it is finer.
    """
    if moment is None:
        return ""
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat(" ", timespec or ("milliseconds" if naive.microsecond else "seconds"))
