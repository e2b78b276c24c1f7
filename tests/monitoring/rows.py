"""Rows to read, written as the engine leaves them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.utils import timezone

from taskqueue.core.histogram import bucket_of, stored
from taskqueue.core.states import FINISHED
from taskqueue.models import Lease, Rollup, Schedule, Task, Worker
from taskqueue.monitoring.why import Reason, why

T = TypeVar("T")

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def ago(duration: timedelta) -> datetime:
    """That long before now."""
    return timezone.now() - duration


def within_a_minute(look: Callable[[], T]) -> T:
    """What is seen while no minute ends: with each, charts begin and end with another one."""
    while True:
        begun = timezone.now()
        seen = look()
        if timezone.now().replace(second=0, microsecond=0) <= begun:
            return seen


def make_task(status: str = "ready", **fields: Any) -> Task:
    """A task of that status."""
    if status in FINISHED:
        fields.setdefault("finished_at", timezone.now())
    values = {"name": "shop.tasks.send", "crash_delay": timedelta(seconds=10), **fields}
    return Task.objects.create(status=status, **values)


def make_worker(name: str = "w1", **fields: Any) -> Worker:
    """A worker that lives, unless the fields say otherwise."""
    now = timezone.now()
    values = {
        "host": "host-1", "pid": 7, "concurrency": 4, "started_at": now, "seen_at": now,
        "versions": {"taskqueue": "1.2"}, **fields,
    }  # fmt: skip
    return Worker.objects.create(name=name, **values)


def told(result: Any) -> dict[str, Reason]:
    """The reasons of a task, by code."""
    return {reason.code: reason for reason in why(Task.objects.get(id=result.id))}


def make_running(worker: str = "w1", *, task: Task | None = None, **fields: Any) -> Lease:
    """An attempt that runs."""
    now = timezone.now()
    values = {"claimed_at": now, "started_at": now, "expires_at": now + MINUTE, **fields}
    task = task or make_task("running", attempt=1)
    return Lease.objects.create(task=task, worker_id=worker, attempt=1, **values)


def make_rollup(starts_at: datetime, **fields: Any) -> Rollup:
    """A rollup; `run` and `wait` are durations in seconds."""
    run, wait = fields.pop("run", ()), fields.pop("wait", ())
    values = {"queue_name": "default", "name": "shop.tasks.send", **fields}
    return Rollup.objects.create(
        starts_at=starts_at, run_times=histogram(run), wait_times=histogram(wait), **values
    )


def make_schedule(name: str, **fields: Any) -> Schedule:
    """A schedule that will run next in an hour."""
    values = {
        "task_name": "shop.tasks.send", "rule": {}, "request": {}, "served_until": timezone.now(),
        "next_at": ago(-HOUR), **fields,
    }  # fmt: skip
    return Schedule.objects.create(name=name, **values)


def histogram(durations: Any) -> dict[str, int]:
    """As it stands in JSON."""
    counts: dict[int, int] = {}
    for seconds in durations:
        bucket = bucket_of(seconds)
        counts[bucket] = counts.get(bucket, 0) + 1
    return stored(counts)
