"""Invariant 4: a takeover needs an expired lease, processes that have ended, or a person."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from taskqueue.engine.takeover import ENDED_ON_HOST
from taskqueue.models import Lease, Task
from taskqueue.results import TaskResult
from tests.conftest import StartWorker
from tests.guarantees.history import (
    Journal,
    assert_ownership_does_not_overlap,
    assert_takeovers_followed_expiry,
)
from tests.sample import worker_tasks
from tests.worker_process import wait_until

pytestmark = pytest.mark.slow

BUSY = timedelta(seconds=3)
"""What a busy machine may add."""
TRIES = 3
"""Of which one takes no longer than that: what delays each of them is not the machine."""


def test_the_task_of_a_killed_worker_is_taken_over_soon_after_its_lease(
    start_worker: StartWorker, journal: Journal, tmp_path: Path, short_lease: dict[str, Any]
) -> None:
    short_lease["LEASE_DURATION"] = 6  # Longer than a busy machine delays a ping.
    assert_taken_over(start_worker, journal, tmp_path / "end", settings=short_lease, crash_delay=1)


def test_the_task_of_a_killed_worker_is_taken_over_with_default_settings(
    start_worker: StartWorker, journal: Journal, tmp_path: Path
) -> None:
    assert_taken_over(start_worker, journal, tmp_path / "end", settings={}, crash_delay=10)


def assert_taken_over(
    start_worker: StartWorker,
    journal: Journal,
    end: Path,
    *,
    settings: dict[str, Any],
    crash_delay: float,
) -> None:
    delays: list[tuple[timedelta, timedelta]] = []
    while not delays or not is_soon(*delays[-1], crash_delay):
        assert len(delays) < TRIES, delays
        delays.append(
            taken_over(start_worker, journal, end, settings=settings, crash_delay=crash_delay)
        )


def is_soon(after_expiry: timedelta, pause: timedelta, crash_delay: float) -> bool:
    assert after_expiry > timedelta(0)
    assert pause >= timedelta(seconds=crash_delay)
    latest = timedelta(seconds=crash_delay + 3) + BUSY
    return after_expiry <= timedelta(seconds=2) + BUSY and pause <= latest


def taken_over(
    start_worker: StartWorker,
    journal: Journal,
    end: Path,
    *,
    settings: dict[str, Any],
    crash_delay: float,
) -> tuple[timedelta, timedelta]:
    """How long after its lease's end a task was taken over, and how long it paused then."""
    end.unlink(missing_ok=True)
    first = start_worker("--concurrency", "1", "--name", "first", settings=settings)
    result = worker_tasks.beat.using(crash_delay=crash_delay).enqueue(str(journal.path), str(end))
    wait_until(lambda: len(journal.of(result)) > 2, what="a beating body")
    second = start_worker("--concurrency", "1", "--name", "second", settings=settings)

    first.leave_no_proof()
    first.kill()

    wait_until(lambda: any(line.attempt == 2 for line in journal.of(result)), 90)
    end.touch()
    assert result.wait(60).status == "succeeded"
    lost, again = Lease.objects.filter(task_id=result.id).order_by("attempt")
    assert (lost.status, lost.worker_id, again.worker_id) == ("lost", "first", "second")
    assert (Task.objects.get(id=result.id).crashes, result.attempts) == (1, 2)
    assert_takeovers_followed_expiry()
    assert_ownership_does_not_overlap(journal)
    second.terminate()
    assert second.wait() == 0
    # The lease had been renewed at the last ping, so that its end is a lease after that.
    return lost.finished_at - lost.expires_at, again.claimed_at - lost.finished_at


def test_the_task_of_a_killed_worker_on_the_same_host_is_taken_over_once_its_processes_ended(
    start_worker: StartWorker, journal: Journal, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    first = start_worker("--name", "first")
    beat = worker_tasks.beat.using(crash_delay=0, lease_duration=timedelta(days=1))
    result = beat.enqueue(str(journal.path), str(end))
    wait_until(lambda: len(journal.of(result)) > 2, what="a beating body")
    start_worker("--name", "second")

    killed_at = timezone.now()
    first.kill()

    wait_until(lambda: any(line.attempt == 2 for line in journal.of(result)), 90)
    end.touch()
    assert result.wait(60).status == "succeeded"
    lost = Lease.objects.get(task_id=result.id, attempt=1)
    assert (lost.status, lost.error_message) == ("lost", ENDED_ON_HOST)
    assert killed_at < lost.finished_at < lost.expires_at
    assert_ownership_does_not_overlap(journal)


OFTEN = {"LEASE_DURATION": 6, "PING_INTERVAL": 0.5, "TAKEOVER_INTERVAL": 0.3}
"""A lease that is longer than a busy machine delays a ping."""


def assert_left_alone(start_worker: StartWorker, pool: str, results: list[TaskResult[Any]]) -> None:
    for _ in range(2):
        start_worker("--pool", pool, "--concurrency", "1", settings=OFTEN)
    for result in results:
        assert result.wait(120).status == "succeeded"
        assert result.attempts == 1
    assert set(Lease.objects.values_list("status", flat=True)) == {"succeeded"}


def test_a_body_that_outlasts_many_leases_is_not_taken_over(
    start_worker: StartWorker, pool: str, journal: Journal
) -> None:
    results = [worker_tasks.work.enqueue(str(journal.path), 14) for _ in range(2)]
    assert_left_alone(start_worker, pool, results)


def test_a_body_that_holds_the_interpreter_beyond_its_lease_is_not_taken_over(
    start_worker: StartWorker, pool: str
) -> None:
    """Pings go on: they are the parent's, who holds no interpreter's lock but its own."""
    assert_left_alone(start_worker, pool, [worker_tasks.hold_interpreter.enqueue(10)])
