"""Points in time in the current time zone, for whoever looks at a page."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from django.utils import timezone


def local_time(moment: datetime) -> datetime:
    """The moment in the current time zone; in UTC where the calendar has no such time there.

    A task may be due in the last hour of the year 9999, which east of UTC is the year 10000.
    """
    return in_zone(moment, timezone.get_current_timezone())


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """The same for a zone."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)
