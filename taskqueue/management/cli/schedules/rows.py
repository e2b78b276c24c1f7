"""Moments and columns, as all subcommands of `schedules` print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from taskqueue.management.cli.output import shown, told


def utc(moment: datetime | None) -> str:
    """The moment in a column that is headed by its zone: in seconds, or finer where it is."""
    if moment is None:
        return ""
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat(" ", "milliseconds" if naive.microsecond else "seconds")


def aligned(lines: Iterable[Sequence[str]]) -> list[str]:
    """Lines of equally many cells, as wide as the widest of a column; the last is not cut."""
    cells = [[*map(shown, line[:-1]), told(line[-1])] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
