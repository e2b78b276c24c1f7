"""A body that forks: its copy must not act in the name of the process that the worker started."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from taskqueue.models import Lease, TaskLog
from tests.conftest import Drain
from tests.sample import tasks, worker_tasks
from tests.sample.models import Effect
from tests.worker.reading import ended, leases

pytestmark = pytest.mark.slow

BODIES: dict[Any, dict[str, int]] = {
    # A copy that returns writes what comes behind the fork, in a session of its own.
    worker_tasks.fork: {"original": 3, "copy": 1},
    worker_tasks.fork_async: {},
    worker_tasks.fork_atomically: {"original": 3},
}


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_copy_that_leaves_the_body_ends_without_a_word_to_worker_or_database(
    drain: Drain, pool: str, body: Any
) -> None:
    codes = {"return": 0, "raise": 1, "exit": 7}
    results = {end: body.enqueue(end) for end in codes}
    after = tasks.noop.enqueue_many([((), {})] * 10)

    log = drain("--pool", pool, "--concurrency", "1")

    for end, result in results.items():
        assert (ended(result).status, leases(result)) == ("succeeded", ["succeeded"])
        assert result.return_value == codes[end]
    assert {ended(result).status for result in after} == {"succeeded"}
    assert Lease.objects.count() == 13
    assert not TaskLog.objects.exists()
    assert Counter(Effect.objects.values_list("note", flat=True)) == Counter(BODIES[body])
    assert log.count("end it with os._exit") == 3
    assert "ValueError: raised in the copy" in log
