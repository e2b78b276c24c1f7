"""Attempts that are running now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from taskqueue.monitoring.read_models.attempt import running_now
from tests.monitoring.rows import HOUR, MINUTE, ago, make_running, make_task

pytestmark = pytest.mark.django_db


def test_a_running_attempt_says_what_it_is() -> None:
    task = make_task("running", name="shop.tasks.pack", queue_name="web")
    lease = make_running(
        task=task, started_at=ago(MINUTE), progress=12.5, progress_message="at it",
        stop_requested_at=timezone.now(),
    )  # fmt: skip
    (running,) = running_now()
    assert (running.task_id, running.lease_id, running.attempt) == (task.id, lease.id, 1)
    assert (running.name, running.queue_name) == ("shop.tasks.pack", "web")
    assert (running.worker_name, running.started_at) == ("w1", lease.started_at)
    assert (running.progress, running.progress_message) == (12.5, "at it")
    assert (running.is_stopping, running.is_wedged) == (True, False)
    assert running.running_seconds == pytest.approx(60, abs=40)


def test_a_task_that_is_claimed_but_not_started_is_not_running() -> None:
    make_running(started_at=None)
    assert running_now() == []


def test_a_finished_attempt_is_not_running() -> None:
    make_running(status="succeeded", finished_at=timezone.now())
    assert running_now() == []


def test_the_wedged_stand_first_then_the_longest() -> None:
    for minutes in (1, 3, 2):
        make_running(f"{minutes} minutes", started_at=ago(timedelta(minutes=minutes)))
    make_running("wedged", wedged_at=timezone.now())
    make_running("long wedged", wedged_at=ago(HOUR))
    names = ["long wedged", "wedged", "3 minutes", "2 minutes", "1 minutes"]
    assert [running.worker_name for running in running_now()] == names
    assert [running.worker_name for running in running_now(limit=2)] == names[:2]
