"""Groups of collected events: how many wait in each; the events are not shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Max, Min, Sum

from taskqueue.engine.batches.firing import Fired
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Collected
from taskqueue.monitoring.read_models.base import about


@dataclass(frozen=True, kw_only=True)
class ShownGroup:
    """A group whose events wait to become a task."""

    name: str = about("Of the task that gets the events.")
    group: str
    events: int
    bytes: int = about("Of the events, as JSON.")
    oldest_at: datetime = about("When its oldest event was collected.")
    newest_at: datetime


@dataclass(frozen=True, kw_only=True)
class ShownBatch:
    """A task that was enqueued for events of a group."""

    task_id: UUID
    events: int


def read_groups(*, name: str = "", limit: int) -> list[ShownGroup]:
    """Return groups by name; only those of one task if it is named."""
    rows = Collected.objects.using(database_alias())
    if name:
        rows = rows.filter(name=name) if is_storable(name) else rows.none()
    counted = rows.values("name", "group").annotate(
        events=Count("id"), bytes=Sum("size"), oldest_at=Min("collected_at"),
        newest_at=Max("collected_at"),
    )  # fmt: skip
    return [ShownGroup(**row) for row in counted.order_by("name", "group")[:limit]]


def shown_batch(fired: Fired) -> ShownBatch:
    """Make the read model of a batch."""
    return ShownBatch(task_id=UUID(fired.task_id), events=fired.events)
