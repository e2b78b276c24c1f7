"""The log lines of a task, read page by page, as people and programs follow them."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from taskqueue.core.states import FINISHED
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.locking import status_of
from taskqueue.models import TaskLog
from taskqueue.monitoring.read_models.attempt import ShownLogLine, log_lines
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.read_models.task import STATUSES

# The names of levels by which lines are filtered.
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


@dataclass(frozen=True, kw_only=True)
class LinePage:
    """A page of lines, the oldest first, and the parameter of the next request."""

    results: list[ShownLogLine]
    after: int = about("The `after` of the next request, also while more may follow.")
    has_more: bool = about("Whether there are more already.")
    status: str = about("The task's status before its lines were read.", choices=STATUSES)
    is_complete: bool = about("Whether the task has finished and these are its last lines.")


def line_page(
    task_id: UUID,
    *,
    after: int = 0,
    limit: int,
    level: str | None = None,
    attempt: int | None = None,
) -> LinePage:
    """Return lines after an id, by ids: one worker writes the lines of a task at a time.

    The status is read first, for lines are written before the end of their attempt. Raises
    `TaskDoesNotExist`.
    """
    status = status_of(project_connection(), task_id)
    rows = TaskLog.objects.using(database_alias()).filter(task_id=task_id, id__gt=after)
    if level is not None:
        rows = rows.filter(level__gte=LEVELS[level])
    if attempt is not None:
        rows = rows.filter(attempt=attempt)
    lines = list(rows.order_by("id")[: limit + 1])
    kept, has_more = lines[:limit], len(lines) > limit
    return LinePage(
        results=log_lines(kept),
        after=kept[-1].id if kept else after,
        has_more=has_more,
        status=status,
        is_complete=status in FINISHED and not has_more,
    )
