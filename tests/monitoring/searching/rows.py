"""Many tasks of all kinds, to be searched."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.core.uuid7 import uuid7
from taskqueue.models import Lease, Task

NAMES = ("shop.send", "shop.pay", "mail.send")


def make_tasks(count: int, seed: int = 1) -> list[Task]:
    """So many tasks, oldest first; what runs has a lease."""
    chance = random.Random(seed)
    now = timezone.now()
    tasks = [_task(chance, now - timedelta(seconds=count - n)) for n in range(count)]
    Task.objects.bulk_create(tasks)
    Lease.objects.bulk_create(
        Lease(
            task=task, worker_id=f"w{n % 3}", attempt=1, status="running", claimed_at=now,
            expires_at=now,
        )
        for n, task in enumerate(tasks)
        if task.status == TaskStatus.RUNNING
    )  # fmt: skip
    return tasks


def _task(chance: random.Random, at: Any) -> Task:
    status = chance.choice(list(TaskStatus))
    ended = at + timedelta(seconds=chance.randrange(40)) if status in FINISHED else None
    failed = status == TaskStatus.FAILED
    return Task(
        id=_id_at(at), name=chance.choice(NAMES), status=status.value, enqueued_at=at,
        finished_at=ended, queue_name=chance.choice(("default", "mail")),
        priority=chance.randrange(3), crash_delay=timedelta(seconds=1),
        error_class="builtins.KeyError" if failed and chance.random() < 0.5 else "",
        args=[chance.randrange(4)], metadata={"n": chance.randrange(4)},
        route=int(chance.random() < 0.2), unique_key=f"k{chance.randrange(20)}",
    )  # fmt: skip


def _id_at(at: Any) -> UUID:
    milliseconds = int(at.timestamp() * 1000)
    return UUID(int=(milliseconds << 80) | (uuid7().int & (2**80 - 1)))
