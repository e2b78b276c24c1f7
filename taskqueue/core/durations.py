"""Durations as people write them: one spelling for all flags, options and forms."""

from __future__ import annotations

import re
from datetime import timedelta

from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import LONGEST_DURATION

UNITS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw]?)")


def duration_from_text(text: str) -> timedelta:
    """Return the duration of `90`, `90s`, `250ms`, `10m`, `2h`, `1.5d`, `1w`. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(_(
            "{text!r} is not a duration: write 90, 90s, 250ms, 10m, 2h, 1d or 1w.", text=text
        ))  # fmt: skip
    seconds = float(match[1]) * UNITS[match[2]]
    if seconds > LONGEST_DURATION:
        raise ValueError(_("{text!r} is too long: more than 100 years.", text=text))
    return timedelta(seconds=seconds)


def duration_as_text(span: timedelta) -> str:
    """Return the duration as it can be typed: in the largest unit that gives a whole number."""
    count = round(span / timedelta(milliseconds=1))
    for unit in ("w", "d", "h", "m", "s"):
        number, rest = divmod(count, int(UNITS[unit] * 1000))
        if number and not rest:
            return f"{number}{unit}"
    return f"{count}ms" if count else "0s"


def is_duration(text: str) -> bool:
    """Return whether the text is written as a duration."""
    return _DURATION.fullmatch(text.strip()) is not None
