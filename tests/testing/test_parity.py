"""What `run_due` leaves in the database is what a worker leaves there."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import Lease, Task, TaskLog
from taskqueue.testing import run_due
from tests.conftest import Drain
from tests.sample import framework_tasks
from tests.sample.models import Effect
from tests.sample.tasks import (
    add,
    cancel_itself,
    echo,
    fail,
    fail_until,
    fail_with,
    fail_with_callable_backoff,
    give_up,
    log_in,
    mark,
    mark_atomically,
    query_async,
    raise_exit,
    raise_long,
    raise_unprintable,
    retry_later,
    return_set,
    return_size,
    snooze,
    talk,
    unique,
)

TASK = (
    "status", "attempt", "failures", "crashes", "return_value", "error_class", "error_message",
    "holds_unique_key", "parked_at",
)  # fmt: skip
LEASE = ("attempt", "status", "error_class", "error_message", "progress", "progress_message")


def enqueue_all() -> None:
    """One of every kind that a test's process survives."""
    add.enqueue(1)
    add.using(priority=5, queue_name="mail", metadata={"a": 1}).enqueue(2, b=3)
    echo.enqueue((1, b"x"), deep={"a": [None, 1.5]})
    fail.enqueue("always")
    fail_until.enqueue(3)
    fail_with.enqueue("LookupError")
    fail_with_callable_backoff.using(max_attempts=1).enqueue(1)
    for task in (give_up, cancel_itself, return_set, raise_unprintable):
        task.enqueue()
    for times in (1, 2):
        retry_later.enqueue(times)
        snooze.enqueue(times)
        mark_atomically.enqueue(times)
    raise_exit.enqueue("SystemExit")
    raise_exit.enqueue("GeneratorExit")
    raise_long.enqueue(100_000)
    return_size.enqueue(2_000_000)
    talk.enqueue(3)
    unique.enqueue("a")
    unique.using(unique_for="kept").enqueue("b")
    log_in.enqueue("ada", "secret")
    mark.enqueue("effect")
    query_async.enqueue()
    add.using(worker_names=["parity"]).enqueue(7)
    add.using(broadcast=True).enqueue(8)
    add.using(workers=1, max_attempts=2, timeout=60, deadline=600, expires_after=600).enqueue(9)
    framework_tasks.add.enqueue(1)
    framework_tasks.fail.enqueue("of Django")
    framework_tasks.fail_until.enqueue(2)


def found() -> dict[str, Any]:
    """What stands there now, but for names, moments and paths."""
    rows = Task.objects.order_by("enqueued_at", "id")
    place = {task.id: number for number, task in enumerate(rows)}
    leases = Lease.objects.order_by("task_id", "attempt")
    lines = TaskLog.objects.order_by("task_id", "id")
    return {
        "tasks": {place[task.id]: [task.name, *_values(task, TASK)] for task in rows},
        "leases": sorted([place[lease.task_id], *_values(lease, LEASE)] for lease in leases),
        "lines": sorted([place[line.task_id], line.level, line.message] for line in lines),
        "effects": sorted(Effect.objects.values_list("note", "attempt")),
    }


def _values(row: Any, names: tuple[str, ...]) -> list[Any]:
    return [getattr(row, name) for name in names]


def empty() -> None:
    for model in (TaskLog, Lease, Task, Effect):
        model.objects.all().delete()


@pytest.mark.slow
def test_it_leaves_what_a_worker_leaves(drain: Drain) -> None:
    enqueue_all()
    drain("--concurrency", "1", "--name", "parity")
    by_worker = found()
    empty()
    enqueue_all()
    run_due(workers=["parity"])
    by_test = found()
    for what, seen in by_worker.items():
        assert by_test[what] == seen, what
