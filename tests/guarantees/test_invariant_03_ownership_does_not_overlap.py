"""Invariant 3: the attempts of a one-worker task follow each other, and their numbers rise.

A worker whose parent is suspended keeps its socket, its children and its connections; only its
lease runs out. Its children must have ended themselves before another worker begins. Children that
are suspended with it cannot: they are ended as soon as they wake, and nothing of theirs is kept.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from taskqueue.models import Lease, Task
from tests.conftest import StartWorker
from tests.guarantees.history import Journal, assert_ownership_does_not_overlap
from tests.sample import worker_tasks
from tests.worker_process import children_of, wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("what", ["the parent", "the whole tree"])
def test_a_suspended_worker_has_stopped_before_another_takes_over(
    start_worker: StartWorker,
    journal: Journal,
    tmp_path: Path,
    short_lease: dict[str, Any],
    pool: str,
    what: str,
) -> None:
    arguments = ("--pool", pool, "--concurrency", "1")
    short_lease["LEASE_DURATION"] = 10  # Longer than a busy machine delays a ping.
    first = start_worker(*arguments, "--name", "first", settings=short_lease)
    end = tmp_path / "end"
    result = worker_tasks.beat.enqueue(str(journal.path), str(end))
    wait_until(lambda: len(journal.of(result)) > 3, 90, what="a beating body")
    start_worker(*arguments, "--name", "second", settings=short_lease)
    children = children_of(first.pid)

    if what == "the parent":
        first.suspend()
    else:
        first.suspend_tree()
    wait_until(lambda: any(line.attempt == 2 for line in journal.of(result)), 90)
    before = snapshot(result.id)
    resumed_at = time.monotonic()
    if what == "the parent":
        first.resume()
    else:
        first.resume_tree()

    # It gives a sign of life again, and works on; what it held is not its own any more.
    _, alive = psutil.wait_procs(children, timeout=90)
    assert alive == []
    again = worker_tasks.work.using(queue_name="after").enqueue(str(journal.path), 0)
    again.wait(60)
    assert snapshot(result.id) == before
    end.touch()
    assert result.wait(60).return_value == 2
    if what == "the parent":
        assert_ownership_does_not_overlap(journal)
    else:
        assert_ownership_does_not_overlap()
        stale = [line for line in journal.of(result) if line.attempt == 1 and line.at > resumed_at]
        # Ten lines a second; a busy machine may wake its guardian later than the body.
        assert len(stale) <= 10, "a body that woke went on"
    lost, succeeded = Lease.objects.filter(task_id=result.id).order_by("attempt")
    assert (lost.status, lost.worker_id) == ("lost", "first")
    assert (succeeded.status, succeeded.worker_id) == ("succeeded", "second")
    assert Task.objects.get(id=result.id).crashes == 1
    assert first.returncode is None


def snapshot(task_id: object) -> tuple[object, ...]:
    """What a stale worker might change: the task, and the lease that it lost."""
    task = Task.objects.filter(id=task_id).values("status", "attempt", "failures", "crashes").get()
    lease = Lease.objects.filter(task_id=task_id, attempt=1).values().get()
    return task, lease
