"""Asking for operations and serving them, for tests that play the worker."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db import connection

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.operations import serving
from taskqueue.models import Audit, Operation, Task
from tests.engine.steps import claim, end
from tests.sample.tasks import noop


def serve_all(most: int = 500) -> int:
    """Serve until nothing is to be done; in how many chunks."""
    for count in range(most):
        if not serving.step(connection):
            return count
    raise AssertionError(f"Not done after {most} chunks.")


def let_begin() -> None:
    """Let the time pass in which operations can be undone."""
    Operation.objects.update(starts_at=None)


def seen(operation: Operation) -> Operation:
    """The row as it stands."""
    return Operation.objects.get(id=operation.id)


def figures(operation: Operation) -> tuple[str, int, int]:
    """Its status, how many it came to, to how many it was done."""
    row = seen(operation)
    return row.status, row.matched, row.done


def fill(count: int = 10, **options: Any) -> list[Any]:
    """So many tasks that are ready."""
    return [each.id for each in noop.using(**options).enqueue_many([((), {})] * count)]


def fail(count: int = 10, **options: Any) -> list[Any]:
    """So many tasks that failed."""
    ids = fill(count, **options)
    for claimed in claim(count, queue=options.get("queue_name", "default")):
        end(claimed, OutcomeKind.FAILED, error_class="shop.errors.NoStock")
    return ids


def statuses() -> dict[str, int]:
    """How many tasks have each status."""
    return dict(Counter(Task.objects.values_list("status", flat=True)))


def audited(verb: str) -> Counter[str]:
    """How often each task was acted on."""
    return Counter(Audit.objects.filter(verb=verb).values_list("subject", flat=True))
