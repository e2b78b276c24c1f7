"""The log lines of a task, read page by page, for people and programs that follow them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.locking import status_of
from taskqueue.engine.events.following import let_go
from taskqueue.engine.reader_outages import Outage
from taskqueue.exceptions import TaskDoesNotExist
from taskqueue.models import TaskLog
from taskqueue.monitoring.read_models.attempt import ShownLogLine, log_lines
from taskqueue.monitoring.read_models.base import about
from taskqueue.monitoring.read_models.task import STATUSES
from taskqueue.results.handle import growing_pauses

# The names of levels by which lines can be filtered.
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
# The most lines of one page of a stream.
MOST_AT_ONCE = 200


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
    """Return lines after an id, in id order: one worker at a time writes a task's lines.

    The status is read first, because lines are written before the end of their attempt. Raises
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


async def follow_lines(task_id: UUID, *, after: int = 0) -> AsyncIterator[LinePage]:
    """Yield pages of lines after an id until the last; empty pages while nothing is written.

    Each look reads the rows of one task by an index, at most twice a second while there is nothing
    new. It ends if the task is deleted. If the database connection is lost, it continues after the
    last line once the database answers again; this wait is logged and bounded.
    """
    pauses, outage = growing_pauses(None), Outage()
    status = TaskStatus.READY.value  # Not known yet, and not shown.
    while True:
        try:
            page = await sync_to_async(_look, thread_sensitive=True)(task_id, after)
        except TaskDoesNotExist:
            return
        except (OperationalError, InterfaceError) as error:
            pause = await sync_to_async(_pause_after, thread_sensitive=True)(outage, error)
            yield LinePage(
                results=[], after=after, has_more=False, status=status, is_complete=False
            )
            await asyncio.sleep(pause)
            continue
        outage.is_over(after)
        status = page.status
        yield page
        after = page.after
        if page.is_complete:
            return
        if page.has_more:
            continue
        if page.results:
            pauses = growing_pauses(None)
        await asyncio.sleep(next(pauses))


def _pause_after(outage: Outage, error: Exception) -> float:
    return outage.wait_after(project_connection(), error)


def _look(task_id: UUID, after: int) -> LinePage:
    try:
        return line_page(task_id, after=after, limit=MOST_AT_ONCE)
    finally:
        let_go()
