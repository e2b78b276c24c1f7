"""Points in time as they are typed for a rule; without an offset they are of the rule's zone."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime, tzinfo
from typing import Any

from django.utils import timezone

from taskqueue.management.cli.base import usage_error
from taskqueue.rules.zones import zone, zone_name


def wall_moment(text: str) -> datetime:
    """A datetime in ISO 8601, with or without an offset. Raises ArgumentTypeError."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no time: write 2026-03-01T12:00+00:00.") from None


def zone_for(tz: Any) -> tzinfo:
    """The zone of that name, the project's where there is none. Raises `InvalidSchedule`."""
    return timezone.get_default_timezone() if tz is None else zone(zone_name("The rule", tz))


def in_zone(moment: datetime, tz: tzinfo) -> datetime:
    """The moment in UTC; a wall time that comes twice is the first of the two.

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
