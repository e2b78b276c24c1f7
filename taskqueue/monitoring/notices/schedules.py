"""Notices of schedules that do not run although they should, or are not served."""

from __future__ import annotations

from collections.abc import Iterator

from taskqueue.monitoring.notice import ERROR, Notice
from taskqueue.monitoring.notices.situation import Situation

MOST = 20


def resting_schedules(situation: Situation) -> Iterator[Notice]:
    """Yield the first schedules that paused themselves or could not be served."""
    for _, name, paused_at, trouble, failures in situation.standing.resting:
        if paused_at is None:
            yield Notice("schedule_trouble", ERROR, name, detail=trouble)
        else:
            yield Notice("schedule_paused_itself", ERROR, name, count=failures, since=paused_at)


def overdue_schedules(situation: Situation) -> Iterator[Notice]:
    """Yield one notice for all schedules that are overdue; paused ones miss nothing."""
    overdue = situation.standing.overdue
    if overdue:
        first = overdue[0]
        yield Notice(
            "schedule_overdue",
            ERROR,
            first.name,
            count=min(MOST, len(overdue)),
            is_capped=len(overdue) > MOST,
            seconds=first.seconds,
            since=first.since,
        )
