"""Rows for the admin to show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from taskqueue import control
from taskqueue.models import Audit, Lease, Queue, Task, TaskLog, Worker
from tests.sample.tasks import log_in

EVIL = "<script>alert('gotcha')</script>"
SECRET = "correct horse battery staple"


@dataclass(frozen=True)
class Rows:
    """One row of each kind."""

    task: Task
    lease: Lease
    worker: Worker
    queue: Queue
    tasklog: TaskLog
    audit: Audit

    def of(self, model_name: str) -> Any:
        """The row of a model."""
        return getattr(self, model_name)


def make_rows() -> Rows:
    """A task with a secret, an attempt that failed badly, and all that belongs to it."""
    result = log_in.using(unique_key="the-key", metadata={"note": EVIL}).enqueue(EVIL, SECRET)
    control.cancel(result.id, by="ann", reason=EVIL)
    now = timezone.now()
    task = Task.objects.get(id=result.id)
    worker = Worker.objects.create(
        name="worker-1", host="host-1", pid=1, started_at=now, seen_at=now, trouble=EVIL,
        queues={"default": 1}, versions={"python": "3"},
    )  # fmt: skip
    lease = Lease.objects.create(
        task=task, worker_id=worker.name, attempt=1, status="failed", claimed_at=now,
        started_at=now, finished_at=now, expires_at=now + timedelta(seconds=30), progress=25,
        progress_message=EVIL, error_class="builtins.ValueError", error_message=EVIL,
        traceback=f"Traceback\n  {EVIL}",
    )  # fmt: skip
    line = TaskLog.objects.create(
        task=task, attempt=1, logged_at=now, level=30, logger="shop", message=EVIL
    )
    queue = Queue.objects.create(name="default")
    return Rows(task, lease, worker, queue, line, Audit.objects.get(subject=str(task.id)))


def fail_many(count: int) -> None:
    """So many tasks, each with a lease and a log line, all of one worker."""
    now = timezone.now()
    tasks = [
        Task(
            name="shop.tasks.gone", status="failed", args=[number], finished_at=now, attempt=1,
            error_class="builtins.ValueError", crash_delay=timedelta(seconds=1),
        )
        for number in range(count)
    ]  # fmt: skip
    Task.objects.bulk_create(tasks)
    Lease.objects.bulk_create(
        Lease(
            task=task, worker_id="worker-1", attempt=1, status="failed", claimed_at=now,
            finished_at=now, expires_at=now,
        )
        for task in tasks
    )  # fmt: skip
    TaskLog.objects.bulk_create(
        TaskLog(task=task, attempt=1, logged_at=now, level=20, message="said") for task in tasks
    )
