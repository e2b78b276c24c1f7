"""The schedules whose times come next."""

from __future__ import annotations

from typing import Any

from taskqueue.admin.badges import badge
from taskqueue.admin.dashboard.moments import short_moment
from taskqueue.admin.display import link_to_row
from taskqueue.admin.schedules.rule_words import rule_words
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.reading import OVERDUE
from taskqueue.models import Schedule
from taskqueue.models.clock import DatabaseClock

MOST = 6


def next_schedules() -> list[dict[str, Any]]:
    """Those that will run something, the next first."""
    rows: Any = (
        Schedule.objects.using(database_alias())
        .filter(next_at__isnull=False, is_enabled=True, removed_at=None, paused_at=None)
        .annotate(now=DatabaseClock())
        .only("name", "rule", "next_at")
        .order_by("next_at", "id")[:MOST]
    )
    return [
        {
            "name": link_to_row(Schedule, schedule.pk, schedule.name),
            "rule": rule_words(schedule),
            "next_at": short_moment(schedule.next_at),
            "badge": badge("overdue") if schedule.next_at < schedule.now - OVERDUE else "",
        }
        for schedule in rows
    ]
