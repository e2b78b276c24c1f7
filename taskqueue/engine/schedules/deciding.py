"""Choosing the nominal times that run, by the state of the schedule and its missed-run policy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from taskqueue.core.policies import Missed
from taskqueue.models import Schedule

# A nominal time that is served no later than this, and before the next one, was not missed.
ON_TIME = timedelta(seconds=60)


def decide(
    schedule: Schedule, due: Sequence[datetime], now: datetime, *, has_more: bool = False
) -> dict[datetime, str]:
    """Return why each of these nominal times, in order, does not run; empty where it runs.

    `has_more`: later ones have come too.
    """
    if resting := resting_reason(schedule):
        return dict.fromkeys(due, resting)
    reasons = {nominal_at: _missed_reason(schedule, now - nominal_at) for nominal_at in due}
    is_last = bool(due) and not has_more
    if is_last and (now - due[-1] <= ON_TIME or schedule.missed == Missed.LATEST):
        reasons[due[-1]] = ""
    return reasons


def _missed_reason(schedule: Schedule, late: timedelta) -> str:
    """Return why one that was missed, and is not the latest, does not run; empty where it does."""
    window = schedule.missed_window
    if schedule.missed == Missed.ALL:
        return ""
    if schedule.missed == Missed.LATEST:
        return "Missed; the latest one makes up for it."
    if schedule.missed == Missed.WINDOW and window is not None:
        return "" if late <= window else f"Missed by more than {window.total_seconds():g} s."
    return "Missed: nobody served the schedule in time."


def resting_reason(schedule: Schedule) -> str:
    """Return why nothing of a schedule is begun now; empty where it is."""
    if schedule.removed_at is not None:
        return "No code declares the schedule any more."
    if not schedule.is_enabled:
        return "The schedule is not enabled."
    if schedule.paused_at is None:
        return ""
    by = f" by {schedule.paused_by}" if schedule.paused_by else ""
    return f"Paused{by}: {schedule.pause_reason}" if schedule.pause_reason else f"Paused{by}."
