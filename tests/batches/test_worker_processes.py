"""Batches with real workers, which are killed in the middle."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from taskqueue.models import Collected, Lease, Task
from tests.conftest import StartWorker
from tests.sample.workflow_tasks import gather
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow
SHORT = {"LEASE_DURATION": 3, "PING_INTERVAL": 0.4, "TAKEOVER_INTERVAL": 0.3}
EVENTS, GROUPS = 300, 3


def test_each_event_is_in_one_batch_whichever_worker_is_killed(
    start_worker: StartWorker, tmp_path: Path
) -> None:
    workers = [start_worker("--queues", "others", settings=SHORT) for _ in range(2)]
    start_worker(settings=SHORT)
    for number in range(EVENTS):
        gather.collect(number, group=f"g{number % GROUPS}")
        if number % 100 == 50:
            enqueued = Task.objects.count()
            wait_until(lambda enqueued=enqueued: Task.objects.count() > enqueued, 60)
            workers.pop().kill()
            workers.append(start_worker("--queues", "others", settings=SHORT))
    wait_until(lambda: not Collected.objects.exists(), 60, what="the last batch")
    wait_until(lambda: not Task.objects.filter(finished_at=None).exists(), 60)

    rows = Task.objects.order_by("id")
    found = Counter(event for row in rows for event in row.args[0])
    assert set(found) == set(range(EVENTS))
    assert set(found.values()) == {1}
    assert all(len(row.args[0]) <= 7 for row in rows)
    assert all(len({event % GROUPS for event in row.args[0]}) == 1 for row in rows)
    assert [row.return_value for row in rows] == [len(row.args[0]) for row in rows]
    assert set(Lease.objects.values_list("status", flat=True)) == {"succeeded"}
