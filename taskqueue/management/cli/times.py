"""Points in time and durations as they are typed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from taskqueue.declarations.option_forms import duration_from_text, is_duration


def duration(text: str) -> timedelta:
    """`90`, `90s`, `10m`, `2h`, `1.5d` or `1w`."""
    try:
        return duration_from_text(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


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
    if is_duration(text):
        return timezone.now() - duration(text)
    return moment(text)
