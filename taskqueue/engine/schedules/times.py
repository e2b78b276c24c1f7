"""When the runs of a schedule start: at its nominal times, with its jitter, up to the last run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from taskqueue.models import Schedule
from taskqueue.rules import Rule
from taskqueue.rules.base import LAST

# The steps of a jitter: delays are multiples of its 2**32th part.
PARTS = 2**32


class Time(NamedTuple):
    """A nominal time, and when its run starts."""

    nominal_at: datetime
    starts_at: datetime


def delay_of(schedule: Schedule, nominal_at: datetime) -> timedelta:
    """Return the delay of a nominal time's run, which is less than the schedule's jitter.

    It depends only on the schedule's name and the time, so a preview and every worker compute the
    same delay. Schedules with the same rule are spread by their names.
    """
    if not schedule.jitter:
        return timedelta(0)
    text = f"{schedule.name}|{nominal_at.astimezone(UTC).isoformat()}"
    part = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    milliseconds = schedule.jitter // timedelta(milliseconds=1)
    return timedelta(milliseconds=milliseconds * part // PARTS)


def is_exhausted(schedule: Schedule) -> bool:
    """Return whether its rule has had all of its allowed runs."""
    return schedule.max_runs is not None and schedule.run_count >= schedule.max_runs


def times_from(schedule: Schedule, rule: Rule, moment: datetime | None = None) -> Iterator[Time]:
    """Yield the nominal times after that moment, with the starts of their runs.

    Without a moment, those after the last served time. No run starts before the run of an earlier
    nominal time. Some of these runs may be skipped, so there may be more times than runs are left.
    """
    latest = None
    for nominal_at in rule.between(moment or schedule.served_until, LAST):
        start = _start(schedule, nominal_at)
        latest = start if latest is None else max(latest, start)
        yield Time(nominal_at, latest)


def next_start(schedule: Schedule, rule: Rule) -> datetime | None:
    """Return when the run of the next nominal time starts; None if there is none."""
    if is_exhausted(schedule):
        return None
    return next((time.starts_at for time in times_from(schedule, rule)), None)


def start_after(schedule: Schedule, rule: Rule, moment: datetime) -> datetime | None:
    """Return when the run that follows an end starts; None if there is none."""
    nominal_at = None if is_exhausted(schedule) else rule.after(moment)
    return None if nominal_at is None else _start(schedule, nominal_at)


def starts_to_come(schedule: Schedule, rule: Rule, now: datetime, *, count: int) -> list[datetime]:
    """Return when the next runs start, assuming that none of them is skipped."""
    if schedule.max_runs is not None:
        count = min(count, max(0, schedule.max_runs - schedule.run_count))
    # A time is not held up by times more than a jitter before it.
    first = max(schedule.served_until, now - 2 * (schedule.jitter or timedelta(0)))
    starts = (time.starts_at for time in times_from(schedule, rule, first))
    return list(islice((start for start in starts if start > now), count))


def _start(schedule: Schedule, nominal_at: datetime) -> datetime:
    try:
        return nominal_at + delay_of(schedule, nominal_at)
    except OverflowError:  # At the end of the calendar.
        return nominal_at
