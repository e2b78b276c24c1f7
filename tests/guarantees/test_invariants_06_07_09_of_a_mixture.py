"""Invariants 6, 7 and 9 over a mixture of tasks, with children and workers killed meanwhile.

6. An `atomic` task that succeeded has exactly one effect; one that did not has none.
7. Only transitions in the table happen.
9. Every start is a success, a failure, a crash, or recorded as what else it was.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from taskqueue.models import Task
from tests.conftest import StartWorker
from tests.guarantees.history import (
    Journal,
    all_ended,
    assert_atomic_effects,
    assert_none_lost,
    assert_only_known_transitions,
    assert_ownership_does_not_overlap,
    assert_rollups_count_every_attempt,
    assert_starts_are_bounded,
    assert_takeovers_followed_expiry,
    recorded_changes,
)
from tests.guarantees.mixture import Mixture
from tests.sharing_out import DATABASE
from tests.worker_process import WorkerProcess, children_of, wait_until

pytestmark = pytest.mark.slow


SEEDS = [1, 2] if os.environ.get("TASKQUEUE_FULL") == "1" else [1 + (DATABASE == "sqlite")]
"""Another one on each database, for each takes its time."""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mixture_keeps_the_invariants_while_processes_are_killed(
    start_worker: StartWorker, journal: Journal, short_lease: dict[str, Any], seed: int
) -> None:
    chance = random.Random(seed)
    with recorded_changes() as changes:
        mixture = Mixture(journal, rounds=40)
        workers = [
            start_worker("--pool", pool, "--concurrency", "2", settings=short_lease)
            for pool in ("process", "thread", "process")
        ]
        for kills in range(1, 7):
            wait_until(lambda n=kills: len(journal.lines()) >= n * 15, 60, what="some work")
            kill_something(workers, chance, kills)
            if kills % 3 == 0:
                workers.append(start_worker("--concurrency", "2", settings=short_lease))
        wait_until(lambda: all_ended(mixture.all), 180, what="the end of all tasks")

    assert_none_lost(mixture.all)
    assert_atomic_effects(mixture.atomic)
    assert_only_known_transitions(changes)
    assert_starts_are_bounded(mixture.all)
    assert_takeovers_followed_expiry()
    assert_rollups_count_every_attempt()
    assert_ownership_does_not_overlap(journal)
    statuses = Counter(Task.objects.values_list("name", "status"))
    assert statuses["tests.sample.tasks.mark_atomically", "failed"] <= 10
    assert {status for name, status in statuses if name.endswith("work_hard")} == {"succeeded"}


def kill_something(workers: list[WorkerProcess], chance: random.Random, kills: int) -> None:
    """Kill a worker every third time, some child of one otherwise."""

    if kills % 3 == 0:
        workers.pop(chance.randrange(len(workers))).kill()
        return
    children = [child for worker in workers for child in children_of(worker.pid)]
    with suppress(ProcessLookupError):
        os.kill(chance.choice(children).pid, signal.SIGKILL)
