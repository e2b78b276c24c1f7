"""Invariant 5: what is written under an ended lease changes no row."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from taskqueue.models import Lease, Task, TaskLog
from tests.conftest import StartWorker
from tests.sample import worker_tasks
from tests.sample.models import Effect
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow


FAR_PING = {"LEASE_DURATION": 600, "PING_INTERVAL": 200}
"""The worker does not notice meanwhile, and end the body itself."""


@pytest.mark.parametrize(
    "definition",
    [
        worker_tasks.report_and_end,
        # On SQLite such a body holds the write lock: nobody could end its lease.
        pytest.param(worker_tasks.report_atomically, marks=pytest.mark.postgresql_only),
    ],
    ids=["plain", "atomic"],
)
@pytest.mark.parametrize("status", ["succeeded", "lost"])
def test_a_body_whose_lease_was_ended_writes_nothing_more(
    start_worker: StartWorker, tmp_path: Path, pool: str, definition: Any, status: str
) -> None:
    """The lease ends behind the worker's back, as a takeover ends it; then the body goes on."""
    start_worker("--pool", pool, "--concurrency", "1", settings=FAR_PING)
    go, done = tmp_path / "go", tmp_path / "done"
    result = definition.enqueue(str(go), str(done))
    wait_until(lambda: TaskLog.objects.filter(message="began").exists(), what="a line")
    lease = Lease.objects.get(task_id=result.id)
    Lease.objects.filter(id=lease.id).update(status=status, finished_at=lease.claimed_at)
    Task.objects.filter(id=result.id).update(status="scheduled", run_after=far_away(lease))
    before = rows(result.id)

    go.touch()
    wait_until(done.exists, what="the end of the body")
    tasks_after = worker_tasks.crash_until.enqueue(1)
    tasks_after.wait(60)

    assert rows(result.id) == before
    assert not Effect.objects.filter(note="atomic").exists()


def far_away(lease: Lease) -> Any:
    return lease.claimed_at + timedelta(days=365)


def rows(task_id: object) -> list[Any]:
    """Everything that an attempt may write."""
    return [
        *Task.objects.filter(id=task_id).values(),
        *Lease.objects.filter(task_id=task_id).values(),
        *TaskLog.objects.filter(task_id=task_id).values(),
    ]
