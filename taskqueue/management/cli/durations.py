"""Durations and sizes, short enough for a table."""

from __future__ import annotations

MINUTE, HOUR, DAY = 60, 3600, 86_400


def short(seconds: float | None) -> str:
    """Such as `250 ms`, `4.2 s`, `17 min`, `2.5 h`, `12 d`; empty for None."""
    if seconds is None:
        return ""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 2 * MINUTE:
        return f"{_two_digits(seconds)} s"
    if seconds < 90 * MINUTE:
        return f"{_two_digits(seconds / MINUTE)} min"
    if seconds < 36 * HOUR:
        return f"{_two_digits(seconds / HOUR)} h"
    return f"{_two_digits(seconds / DAY)} d"


def size(octets: int | None) -> str:
    """Such as `12 MB`; empty for None."""
    if octets is None:
        return ""
    number, unit = float(octets), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1024, larger
    return f"{number:.0f} {unit}" if unit == "B" or number >= 9.95 else f"{number:.1f} {unit}"


def _two_digits(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 9.95 else f"{number:.0f}"
