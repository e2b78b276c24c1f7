"""Durations, sizes and names in what the doctor says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

MOST_NAMED = 5


def duration(seconds: float) -> str:
    """Such as `42 s`, `3:12:07`, `2 days, 1:00:00`."""
    if seconds < 60:
        return f"{max(0.0, seconds):.0f} s" if seconds >= 1 else f"{max(0.0, seconds):.1f} s"
    return str(timedelta(seconds=round(seconds)))


def megabytes(octets: float) -> str:
    """Such as `12 MB`."""
    number = octets / 1024 / 1024
    return f"{number:,.0f} MB" if number >= 10 else f"{number:.1f} MB"


def listed(names: Sequence[object]) -> str:
    """Such as `a, b, …`."""
    shown = [str(name) for name in names[:MOST_NAMED]]
    return ", ".join([*shown, "…"] if len(names) > MOST_NAMED else shown)
