"""Workers that are lost while they hold leases of a year, played."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from taskqueue.engine.rows import Claimed
from taskqueue.models import Worker
from taskqueue.results import TaskResult
from tests.engine.steps import claim_one, past
from tests.sample.tasks import noop

YEAR = timedelta(days=365)


def worker_row(name: str = "w1", **fields: Any) -> Worker:
    """The row of a worker that lives, as far as the fields say nothing else."""
    values: dict[str, Any] = {
        "incarnation": uuid4(),
        "host": "elsewhere",
        "pid": 1,
        "lease_seconds": 1e9,
        "started_at": past(),
        "seen_at": past(),
    }
    return Worker.objects.update_or_create(name=name, defaults={**values, **fields})[0]


def lose(name: str = "w1") -> None:
    """Let a worker be silent for longer than its lease, wherever the server's start lies."""
    Worker.objects.filter(name=name).update(lease_seconds=0.0)


def held_by_lost(definition: Any = noop, worker: str = "w1") -> tuple[TaskResult[Any], Claimed]:
    """A task that a lost worker holds for a year, and its claim."""
    result = definition.using(lease_duration=YEAR).enqueue()
    worker_row(worker)
    claimed = claim_one(worker=worker)
    lose(worker)
    return result, claimed
