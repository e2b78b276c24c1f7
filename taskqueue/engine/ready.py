"""The only place where existing tasks become `ready`.

There are few exceptions. Three statements of each dialect contain the change themselves: the insert
of a new task (`enqueue`), the promotion of due tasks (`duties`), and the record of an attempt that
does not count (`record`). The release of steps uses `MAKES_READY` from here. A task of several
workers that none has started becomes `ready` again in `multi_worker.settling`. Nothing else writes
`ready` or `ready_at`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Case, F, QuerySet, Value, When
from django.db.models.functions import Coalesce

from taskqueue.core.states import TaskStatus
from taskqueue.models import Task

# The values that `make_ready` writes, for a statement that releases tasks of steps.
MAKES_READY = f"status = '{TaskStatus.READY}', run_after = %(now)s, ready_at = %(now)s"

RETRYING_STAYS = Case(
    When(status=TaskStatus.RETRYING.value, then=Value(TaskStatus.RETRYING.value)),
    default=Value(TaskStatus.SCHEDULED.value),
)

# For a finished task that will run again: its attempts go on counting, nothing else is kept.
REOPENED: dict[str, Any] = {
    "attempts_before_retry": F("attempt"),
    "failures": 0,
    "crashes": 0,
    "parked_at": None,
    "started_at": None,
    "finished_at": None,
    "prune_after": None,
    "return_value": None,
    "error_class": "",
    "error_message": "",
    "deadline_at": None,
    "expires_at": None,
}


def make_ready(tasks: QuerySet[Task], *, now: datetime, **columns: Any) -> int:
    """Make the tasks ready, and set these columns too. Return how many there were."""
    return tasks.update(status=TaskStatus.READY.value, run_after=now, ready_at=now, **columns)


def make_blocked(tasks: QuerySet[Task]) -> int:
    """Make finished tasks of a step wait for its release. Return how many there were."""
    return tasks.update(status=TaskStatus.BLOCKED.value, ready_at=None, **REOPENED)


def make_due(tasks: QuerySet[Task], *, due: datetime, now: datetime, **columns: Any) -> int:
    """Make the tasks ready, or scheduled if they are due later. Return how many there were."""
    if due <= now:
        return make_ready(tasks, now=now, **columns)
    return tasks.update(status=RETRYING_STAYS, run_after=due, ready_at=None, **columns)


def put_off(tasks: QuerySet[Task], *, due: datetime, now: datetime, **columns: Any) -> int:
    """Make tasks wait until then; a task that is due by then is ready and keeps its position.

    If each call gave it a new position, a task that is put off forever would never start.
    """
    if due > now:
        return make_due(tasks, due=due, now=now, **columns)
    ready_at = Coalesce(F("ready_at"), Value(now))
    return tasks.update(status=TaskStatus.READY.value, run_after=due, ready_at=ready_at, **columns)
