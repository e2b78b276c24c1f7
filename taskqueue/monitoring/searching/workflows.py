"""Workflows that match a filter, newest first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.models import Schedule, Step, Workflow
from taskqueue.monitoring.searching.orders import first_id_at
from taskqueue.monitoring.searching.streams import SKEW

HEX = re.compile(r"[0-9a-f]{1,32}")


@dataclass(frozen=True, kw_only=True)
class WorkflowFilter:
    """Workflows that match all given filters. Children are only found by `parent` or `id_prefix`.

    Raises ValueError for an `id_prefix` with which no id begins.
    """

    statuses: Collection[str] = ()
    names: Collection[str] = ()
    name_prefix: str = ""
    # The name of the schedule that enqueued it.
    schedule: str = ""
    unique_key: str = ""
    id_prefix: str = ""
    # The workflow that runs it as a step.
    parent: UUID | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    # Whether it is paused; None for both.
    is_paused: bool | None = None

    def __post_init__(self) -> None:
        if self.id_prefix and not HEX.fullmatch(_digits(self.id_prefix)):
            raise ValueError(f"{self.id_prefix!r} is not the beginning of an id.")


def matching_workflows(which: WorkflowFilter) -> QuerySet[Workflow]:
    """Return the matching rows, newest first, in the order of their ids."""
    rows = Workflow.objects.using(database_alias())
    texts = (*which.names, which.name_prefix, which.schedule, which.unique_key)
    if not all(map(is_storable, texts)):
        return rows.none()
    # Columns that may be large are read row by row.
    lean = rows.defer("args", "kwargs", "context", "callbacks")
    return lean.filter(*_conditions(which, rows.db)).order_by("-id")


def _conditions(which: WorkflowFilter, alias: str) -> Iterator[Q]:
    plain: dict[str, Any] = {
        "status__in": sorted(which.statuses),
        "name__in": sorted(which.names),
        "name__startswith": which.name_prefix,
        "unique_key": which.unique_key,
        "created_at__gte": which.created_after,
        "created_at__lt": which.created_before,
    }
    yield Q(**{lookup: value for lookup, value in plain.items() if value})
    if which.schedule:
        schedules = Schedule.objects.using(alias).filter(name=which.schedule)
        yield Q(schedule_id__in=schedules.values("id"))
    if which.id_prefix:
        digits = _digits(which.id_prefix)
        first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
        yield Q(id__range=(first, last))
    if which.parent is not None:
        steps = Step.objects.using(alias).filter(workflow_id=which.parent)
        yield Q(parent_step_id__in=steps.values("id"))
    elif not which.id_prefix:
        yield Q(parent_step_id=None)
    if which.is_paused is not None:
        yield Q(paused_at__isnull=not which.is_paused, finished_at=None)
    yield from _around(which)


def _around(which: WorkflowFilter) -> Iterator[Q]:
    """Yield bounds of ids for the times in the filter, so that no other rows are read."""
    try:
        if which.created_after is not None:
            yield Q(id__gte=first_id_at(which.created_after - SKEW))
        if which.created_before is not None:
            yield Q(id__lt=first_id_at(which.created_before + SKEW))
    except OverflowError:  # The first or the last hour that can be represented.
        return


def _digits(prefix: str) -> str:
    return prefix.replace("-", "").lower()
