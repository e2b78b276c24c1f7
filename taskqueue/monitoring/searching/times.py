"""Points in time as they are typed into a search."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from django.utils import timezone

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhdw])", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)


def moment(text: str, *, now: datetime) -> datetime:
    """`2h` before now; `14:30` of today; a date, or a datetime in ISO 8601. Raises ValueError.

    Without an offset it is meant in the current time zone; a date is its beginning.
    """
    try:
        return _read(text.strip(), now).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} lies outside the years 1 to 9999.") from error


def _read(text: str, now: datetime) -> datetime:
    if ago := _AGO.fullmatch(text):
        return now - timedelta(seconds=float(ago[1]) * UNITS[ago[2]])
    if of_today := _TIME.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in of_today.groups())
        found = datetime.combine(timezone.localtime(now), time(hours, minutes, seconds))
    else:
        found = datetime.fromisoformat(text)
    return timezone.make_aware(found) if timezone.is_naive(found) else found
