"""Parts of results, which bodies write while they run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine.connections import database_alias
from taskqueue.engine.result_parts import parts_of
from taskqueue.exceptions import TaskDoesNotExist
from taskqueue.models import ResultPart, Task
from taskqueue.monitoring.read_models.base import about, from_rows

STATUSES = [status.value for status in TaskStatus]


@dataclass(frozen=True, kw_only=True)
class ShownPart:
    """A part of the result of a task."""

    attempt: int
    place: int = about("From 0, in the order in which they were written.")
    value: Any = about("As the body wrote it.")
    written_at: datetime


@dataclass(frozen=True, kw_only=True)
class PartPage:
    """Parts of one attempt, in their order, and the parameter of the next request."""

    results: list[ShownPart]
    attempt: int = about(
        "Whose parts these are; without the parameter, the latest attempt's. 0 before the first."
    )
    after: int = about("The `after` of the next request, also while more may follow.")
    has_more: bool = about("Whether there are more already.")
    status: str = about("The task's status before its parts were read.", choices=STATUSES)
    is_complete: bool = about("Whether the task has finished and these are its last parts.")


def shown_parts(rows: Iterable[ResultPart]) -> list[ShownPart]:
    """Make the read models of rows."""
    return from_rows(ShownPart, rows)


def part_page(
    task_id: UUID, *, after: int = -1, limit: int, attempt: int | None = None
) -> PartPage:
    """Return the parts after a place. Raises `TaskDoesNotExist`."""
    rows = Task.objects.using(database_alias()).filter(id=task_id)
    found = rows.values_list("status", "attempt").first()
    if found is None:
        raise TaskDoesNotExist(f"There is no task {task_id}.")
    status, latest = found
    # 0 is the `attempt` of a response before the first part, so a follower notices the first one.
    number = attempt or latest
    parts = list(parts_of(task_id, number).filter(place__gt=after)[: limit + 1])
    kept, has_more = parts[:limit], len(parts) > limit
    return PartPage(
        results=shown_parts(kept),
        attempt=number,
        after=kept[-1].place if kept else after,
        has_more=has_more,
        status=status,
        is_complete=status in FINISHED and not has_more,
    )
