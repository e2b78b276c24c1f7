"""Durations and ages as short texts, in the reader's language."""

from __future__ import annotations

from django.utils.translation import gettext as _

MINUTE, HOUR, DAY = 60, 3600, 86_400


def short_duration(seconds: float | None) -> str:
    """Write a duration, such as "250 ms", "4.2 s", "17 min", "2.5 h", "12 d"; empty for None."""
    if seconds is None:
        return ""
    if seconds < 0.0005:
        return _("under 1 ms")
    if seconds < 0.9995:
        return _("%(number)s ms") % {"number": f"{seconds * 1000:.0f}"}
    if seconds < 2 * MINUTE:
        return _("%(number)s s") % {"number": _two_digits(seconds)}
    if seconds < 90 * MINUTE:
        return _("%(number)s min") % {"number": _two_digits(seconds / MINUTE)}
    if seconds < 36 * HOUR:
        return _("%(number)s h") % {"number": _two_digits(seconds / HOUR)}
    return _("%(number)s d") % {"number": _two_digits(seconds / DAY)}


def rounded_age(seconds: float) -> str:
    """Format an age, rounded down so that a page of ages seldom changes."""
    if seconds < 10:
        return _("under 10 s")
    if seconds < MINUTE:
        return short_duration(seconds // 10 * 10)
    if seconds < 90 * MINUTE:
        return _("%(number)s min") % {"number": int(seconds // MINUTE)}
    return short_duration(seconds)


def _two_digits(number: float) -> str:
    """Format a number with at least two digits: 4.2, but 42."""
    return f"{number:.1f}".removesuffix(".0") if number < 9.95 else f"{number:.0f}"
