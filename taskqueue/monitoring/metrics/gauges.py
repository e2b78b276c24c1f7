"""What stands at this moment: of the schedules and the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.apps import apps

from taskqueue.engine.connections import database_alias
from taskqueue.engine.totals import MOST_LABELS, REST
from taskqueue.models import Schedule
from taskqueue.monitoring.metrics.statements import SIZES
from taskqueue.monitoring.reading import read


@dataclass
class Timetable:
    """When a schedule ran last and runs next; None: never, or not as it stands."""

    last: datetime | None = None
    next: datetime | None = None


def timetables() -> dict[str, Timetable]:
    """The first schedules by name; behind them, together, the rest of the first thousand."""
    rows = (
        Schedule.objects.using(database_alias())
        .order_by("id")
        .only("name", "is_enabled", "removed_at", "paused_at", "last_nominal_at", "next_at")
    )
    found: dict[str, Timetable] = {}
    for place, row in enumerate(rows[:1_000]):
        is_resting = not row.is_active or row.paused_at is not None
        one = Timetable(row.last_nominal_at, None if is_resting else row.next_at)
        if place < MOST_LABELS:
            found[row.name] = one
            continue
        rest = found.setdefault(REST, Timetable())
        rest.last = max(filter(None, (rest.last, one.last)), default=None)
        rest.next = min(filter(None, (rest.next, one.next)), default=None)
    return found


def sizes() -> Mapping[str, int]:
    """Bytes of each table with its indexes; on SQLite of the whole file."""
    tables = [model._meta.db_table for model in apps.get_app_config("taskqueue").get_models()]
    return dict(read(SIZES, tables=sorted(set(tables))))
