"""Reading what became of a task."""

from __future__ import annotations

from typing import Any

from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult


def leases(result: TaskResult[Any]) -> list[str]:
    """The statuses of a task's leases, attempt by attempt."""
    rows = Lease.objects.filter(task_id=result.id).order_by("attempt")
    return [lease.status for lease in rows]


def row(result: TaskResult[Any]) -> Task:
    return Task.objects.get(id=result.id)


def ended(result: TaskResult[Any]) -> TaskResult[Any]:
    result.refresh()
    assert result.is_finished, result
    return result
