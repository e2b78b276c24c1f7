"""One key, many who want it at the same moment: one holder, and no error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Task
from tests.engine.steps import (
    claim,
    end,
    run_at_once,
)
from tests.sample.tasks import echo, unique
from tests.worker_process import ROOT, wait_until, worker_environment

pytestmark = pytest.mark.django_db

only = echo.using(unique_key="only")


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_enqueues_of_the_same_keys_in_opposite_orders_do_not_deadlock() -> None:
    keys = [f"k{number}" for number in range(100)]
    calls = [((key,), {}) for key in keys]
    run_at_once(
        [
            lambda: unique.enqueue_many(calls),
            lambda: unique.enqueue_many(calls[::-1]),
            lambda: unique.enqueue_many(calls),
            lambda: unique.enqueue_many(calls[::-1]),
        ]
    )
    assert Task.objects.count() == 100


RACE = """
import sys, pathlib, time
import django
django.setup()
from tests.sample.tasks import unique
from django.db import connection
connection.ensure_connection()
gate = pathlib.Path(sys.argv[1])
gate.with_name(f"ready-{sys.argv[2]}").touch()
while not gate.exists():
    time.sleep(0.001)
results = [unique.enqueue("same") for _ in range(int(sys.argv[3]))]
print(sum(result.created for result in results), *{str(result.id) for result in results})
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_a_thousand_enqueues_from_many_processes_give_one_live_task(tmp_path: Path) -> None:
    gate, processes, each = tmp_path / "open", 10, 100
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(gate), str(number), str(each)],
            cwd=ROOT,
            env=worker_environment({}),
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    try:
        wait_until(lambda: len(list(tmp_path.glob("ready-*"))) == processes, timeout=120)
        gate.touch()
        answers = [racer.communicate(timeout=120)[0].split() for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    (task,) = Task.objects.all()
    assert sum(int(created) for created, *_ in answers) == 1
    assert {id for _, *ids in answers for id in ids} == {str(task.id)}


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
@pytest.mark.parametrize("unique_for", ["finished", "started", 0.01])
def test_a_key_changes_hands_without_two_holders_or_an_error(unique_for: Any) -> None:
    """Enqueues race with claims, ends, and holders whose time runs out."""
    definition = echo.using(unique_key="only", unique_for=unique_for)
    live: list[int] = []

    def enqueue() -> None:
        for _ in range(40):
            definition.enqueue()
            live.append(Task.objects.filter(holds_unique_key=True).count())

    def work() -> None:
        for _ in range(40):
            with transaction.atomic():
                claimed = claim(1)
            for each in claimed:
                with transaction.atomic():
                    end(each, OutcomeKind.SUCCEEDED)

    run_at_once([enqueue, enqueue, enqueue, work])
    assert set(live) <= {0, 1}
    assert Task.objects.filter(holds_unique_key=True).count() <= 1
