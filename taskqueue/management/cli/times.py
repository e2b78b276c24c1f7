"""Times, durations and whole numbers as they are typed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django.utils import timezone

from taskqueue.declarations.option_forms import duration_from_text, is_duration
from taskqueue.management.cli.base import usage_error
from taskqueue.rules.zones import zone, zone_name


def duration(text: str) -> timedelta:
    """Read a duration: `90`, `90s`, `10m`, `2h`, `1.5d` or `1w`."""
    try:
        return duration_from_text(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def moment(text: str) -> datetime:
    """Read a datetime in ISO 8601; without an offset, in the project's time zone."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a time such as 2026-03-01T12:00+00:00.") from None
    try:
        aware = timezone.make_aware(found) if timezone.is_naive(found) else found
        return aware.astimezone(UTC)
    except OverflowError:
        raise ArgumentTypeError(f"{text!r} must lie in the years 1 to 9999.") from None


def past(text: str) -> datetime:
    """Read a datetime, or how long ago it is."""
    if is_duration(text):
        return timezone.now() - duration(text)
    return moment(text)


def wall_moment(text: str) -> datetime:
    """Read a datetime in ISO 8601, with or without an offset. Raises ArgumentTypeError."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a time such as 2026-03-01T12:00+00:00.") from None


def zone_for(tz: Any) -> tzinfo:
    """Return the zone of that name; None: the project's. Raises `InvalidSchedule`."""
    return timezone.get_default_timezone() if tz is None else zone(zone_name("The rule", tz))


def in_zone(moment: datetime, tz: tzinfo) -> datetime:
    """Return the time in UTC; of a wall time that occurs twice, the first.

    Raises CommandError for a wall time that the zone leaves out.
    """
    try:
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=tz)
        found = aware.astimezone(UTC)
        is_left_out = moment.tzinfo is None and found.astimezone(tz).replace(tzinfo=None) != moment
    except OverflowError:
        raise usage_error(f"{moment.isoformat()} must lie in the years 1 to 9999.") from None
    if is_left_out:
        raise usage_error(
            f"{moment.isoformat(' ')} does not exist in {tz}: the clocks are put forward there. "
            "Give another time, or one with its offset."
        )
    return found


def whole_number(most: int) -> Callable[[str], int]:
    """Return a function that reads a number from 1 to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text[:20]) <= most:
            raise ArgumentTypeError(f"must be a whole number from 1 to {most}")
        return int(text)

    return read
