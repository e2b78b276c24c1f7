"""Schedules that do not run though people want them to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import F, Q

from taskqueue.engine.connections import database_alias
from taskqueue.models import Schedule
from taskqueue.monitoring.notice import ERROR, Notice

MOST = 20
IN_TROUBLE = Q(paused_at=None) & ~Q(trouble="")
PAUSED_ITSELF = Q(
    paused_at__isnull=False, paused_by="", failures_in_row__gte=F("pause_after_failures")
)
"""As `Schedule.paused_itself`."""


def resting_schedules() -> Iterator[Notice]:
    """Those that paused themselves, and those that could not be served; the first of them."""
    rows: Any = Schedule.objects.using(database_alias()).filter(
        IN_TROUBLE | PAUSED_ITSELF,
        is_enabled=True,
        removed_at=None,
    )
    columns = ("name", "paused_at", "failures_in_row", "trouble")
    for name, paused_at, failures, trouble in rows.order_by("id").values_list(*columns)[:MOST]:
        if paused_at is None:
            yield Notice(code="schedule_trouble", level=ERROR, subject=name, detail=trouble)
        else:
            yield Notice(code="schedule_paused_itself", level=ERROR, subject=name, count=failures)
