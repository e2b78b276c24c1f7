"""Read past moments as people type them: one syntax for searches, pages of the admin and flags."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from django.utils import timezone

from taskqueue.core.durations import duration_from_text, is_duration

_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)


def moment(text: str, *, now: datetime) -> datetime:
    """Return the moment that the text names: `2h` ago, the last `14:30`, a date or a datetime.

    Dates and datetimes are in ISO 8601. Without an offset they are in the current time zone; a
    date means its beginning. Raises ValueError for any other text.
    """
    text = text.strip()
    try:
        if of_day := _TIME.fullmatch(text):
            return _last(_time_of_day(of_day), now)
        return _read(text, now).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} lies outside the years 1 to 9999.") from None


def _time_of_day(match: re.Match[str]) -> time:
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    try:
        return time(hours, minutes, seconds)
    except ValueError:
        raise ValueError(
            f"{match[0]!r} is not a time of day: write one from 00:00 to 23:59."
        ) from None


def _last(time_of_day: time, now: datetime) -> datetime:
    today = timezone.localtime(now).date()
    of_today = timezone.make_aware(datetime.combine(today, time_of_day))
    if of_today <= now:
        return of_today.astimezone(UTC)
    yesterday = datetime.combine(today - timedelta(days=1), time_of_day)
    return timezone.make_aware(yesterday).astimezone(UTC)


def _read(text: str, now: datetime) -> datetime:
    try:
        written = datetime.fromisoformat(text)
    except ValueError:
        # A number alone may be meant as a year, and a search may be that of a deletion.
        if is_duration(text) and not text[-1].isdigit():
            return now - duration_from_text(text)
        raise ValueError(
            f"{text!r} is neither a time such as 14:30 or 2026-03-01T12:00+00:00 nor a duration"
            " such as 2h, which is how long ago it is."
        ) from None
    return timezone.make_aware(written) if timezone.is_naive(written) else written
