"""Points in time and durations as they are typed."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from taskqueue.exceptions import LONGEST_DURATION

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)")


def duration(text: str) -> timedelta:
    """`90`, `90s`, `10m`, `2h`, `1.5d` or `1w`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no duration: write 90, 90s, 10m, 2h, 1d or 1w.")
    seconds = float(found[1]) * UNITS[found[2]]
    if seconds > LONGEST_DURATION:
        raise ArgumentTypeError(f"{text!r} is too long: more than 100 years.")
    return timedelta(seconds=seconds)


def moment(text: str) -> datetime:
    """A datetime in ISO 8601; without an offset, in the time zone of the project."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no time: write 2026-03-01T12:00+00:00.") from None
    try:
        aware = timezone.make_aware(found) if timezone.is_naive(found) else found
        return aware.astimezone(UTC)
    except OverflowError:
        raise ArgumentTypeError(f"{text!r} must lie in the years 1 to 9999.") from None


def past(text: str) -> datetime:
    """A datetime, or how long ago."""
    if _DURATION.fullmatch(text.strip()):
        return timezone.now() - duration(text)
    return moment(text)
