"""Invariant 10: at most one live task holds a unique key, whoever enqueues and whoever works."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

import pytest

from taskqueue.models import Task
from tests.conftest import StartWorker
from tests.guarantees.history import Journal
from tests.worker_process import ROOT, wait_until, worker_environment

pytestmark = pytest.mark.slow

KEYS = 3
PUBLISHERS = 4
TIMES = 60

PUBLISH = f"""
import sys, django
django.setup()
from tests.sample import worker_tasks
for number in range({TIMES}):
    result = worker_tasks.work_alone.enqueue(sys.argv[1], str(number % {KEYS}))
    print(result.id, result.created)
"""


def test_bodies_with_the_same_key_never_run_at_once(
    start_worker: StartWorker, journal: Journal
) -> None:
    for pool in ("process", "thread"):
        start_worker("--pool", pool, "--concurrency", "4")
    publishers = [
        subprocess.Popen(
            [sys.executable, "-c", PUBLISH, str(journal.path)],
            cwd=ROOT,
            env=worker_environment({}),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PUBLISHERS)
    ]
    said = [publisher.communicate(timeout=120)[0].split() for publisher in publishers]
    assert [publisher.returncode for publisher in publishers] == [0] * PUBLISHERS
    wait_until(lambda: not Task.objects.exclude(status="succeeded").exists(), 60)

    ids = [line for words in said for line in words[::2]]
    created = [flag for words in said for flag in words[1::2]].count("True")
    assert len(ids) == PUBLISHERS * TIMES
    # Who lost the race was given the holder; nobody was given a task that does not exist.
    assert set(ids) == {str(id) for id in Task.objects.values_list("id", flat=True)}
    assert created == Task.objects.count() == len(journal.lines()) // 2
    assert not Task.objects.filter(holds_unique_key=True).exists()
    inside: dict[str, object] = defaultdict(lambda: None)
    for line in sorted(journal.lines(), key=lambda line: line.at):
        verb, key = line.text.split()
        if verb == "enter":
            assert inside[key] is None, f"two bodies hold {key}"
            inside[key] = line.task_id
        else:
            assert inside[key] == line.task_id
            inside[key] = None
