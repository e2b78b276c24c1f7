"""Parse ids that people give, and show values in messages."""

from __future__ import annotations

from datetime import timedelta

from taskqueue.core.durations import duration_as_text

LARGEST_ID = 2**63 - 1
LONGEST_SHOWN = 100


def row_id(value: object) -> int:
    """Return the id that a value names; 0, which no row has, where it names none."""
    if isinstance(value, int) and not isinstance(value, bool):
        number = int(value)
    else:
        text = str(value)
        # Python reads no number of very many digits.
        is_number = text.isascii() and text.isdigit() and len(text) < 20
        number = int(text) if is_number else 0
    return number if 0 < number <= LARGEST_ID else 0


def counted(number: int, noun: str) -> str:
    """Return such as `1 task` or `2,000 tasks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shown(value: object) -> str:
    """Return a value as an error message shows it, however large or odd it is.

    A duration is shown as it can be typed.
    """
    if isinstance(value, timedelta):
        return duration_as_text(value)
    try:
        text = repr(value)
    except Exception:  # As of a number of too many digits.
        return f"this {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
