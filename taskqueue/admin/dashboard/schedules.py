"""The schedules whose times come next."""

from __future__ import annotations

from typing import Any

from django.db.models import Func, IntegerField, Subquery
from django.utils.formats import number_format
from django.utils.translation import ngettext

from taskqueue.admin.badges import badge
from taskqueue.admin.dashboard.moments import short_moment
from taskqueue.admin.links import Links
from taskqueue.admin.schedules.rule_words import rule_words
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.reading import OVERDUE
from taskqueue.models import Schedule
from taskqueue.models.clock import DatabaseClock

MOST = 6


def schedules_shown(links: Links) -> dict[str, Any]:
    """Those that will run something, the next first, and how many are paused."""
    rows = Schedule.objects.using(database_alias())
    paused = rows.filter(paused_at__isnull=False)
    counted = paused.annotate(number=Func("id", function="COUNT", output_field=IntegerField()))
    found: Any = list(
        rows.filter(next_at__isnull=False, is_enabled=True, removed_at=None, paused_at=None)
        .annotate(now=DatabaseClock(), paused=Subquery(counted.order_by().values("number")))
        .only("name", "rule", "next_at")
        .order_by("next_at", "id")[:MOST]
    )
    return {
        "schedules": [
            {
                "name": links.to_row(Schedule, schedule.pk, schedule.name),
                "rule": rule_words(schedule),
                "next_at": short_moment(schedule.next_at),
                "badge": badge("overdue") if schedule.next_at < schedule.now - OVERDUE else "",
            }
            for schedule in found
        ],
        "schedules_url": links.list_url(Schedule),
        "paused": _paused_words(found[0].paused if found else paused.count()),
        "paused_url": links.list_url(Schedule, state="paused"),
    }


def _paused_words(count: int) -> str:
    words = ngettext("%(count)s schedule is paused", "%(count)s schedules are paused", count)
    return words % {"count": number_format(count, force_grouping=True)} if count else ""
