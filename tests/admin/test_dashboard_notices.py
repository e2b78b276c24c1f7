"""The dashboard describes in a sentence what needs attention, to users who may know it."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args
from uuid import uuid4

import pytest
from django.utils import timezone

from taskqueue import control
from taskqueue.admin.dashboard.sentences import sentence
from taskqueue.admin.links import Links
from taskqueue.models import Rollup, Schedule, Task, Worker
from taskqueue.monitoring.notice import Notice
from taskqueue.monitoring.notice_texts import TEXTS, Code
from tests.admin.conftest import LogIn
from tests.admin.test_dashboard import make_worker, read, region, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker(db: None) -> Worker:
    """One that lives, and takes from all queues."""
    return make_worker("worker-1")


@pytest.mark.parametrize("code", get_args(Code))
def test_every_face_has_words_for_every_notice(code: Code) -> None:
    given = {"subject": str(uuid4()), "example": str(uuid4()), "detail": "a detail", "total": 3}
    for count in (1, 1_234):
        told = words(
            sentence(Notice(code=code, level="error", count=count, **given), Links("admin"))
        )
        assert not told.startswith(code.replace("_", " "))
        assert "{" not in told
    assert TEXTS[code].sentence
    assert TEXTS[code].remedy


def test_a_queue_whose_attempts_fail_needs_attention_while_workers_are_busy(
    log_in_as: LogIn, worker: Worker
) -> None:
    Rollup.objects.create(
        resolution=60, starts_at=timezone.now() - timedelta(minutes=1), queue_name="mail",
        name="a", succeeded=13, failed=297,
    )  # fmt: skip
    page = read(log_in_as("viewer"))
    told = "297 of 310 attempts on the queue mail failed within the last 15 minutes."
    assert told in words(region(page, "notices"))
    assert words(region(page, "state")).startswith("> Needs attention 1 worker running")


def test_a_task_for_an_absent_worker_is_reported_and_makes_its_queue_older(
    log_in_as: LogIn, worker: Worker
) -> None:
    task = Task.objects.create(
        name="a", status="ready", route=1, pinned_to="ghost", worker_names=["ghost"],
        run_after=timezone.now() - timedelta(minutes=8), crash_delay=timedelta(seconds=1),
    )  # fmt: skip
    page = read(log_in_as("viewer"))
    shown = words(region(page, "notices"))
    told = "1 task on the queue default waits for workers that are not running"
    assert told in shown
    assert f"…{str(task.pk)[-8:]} waits for ghost." in shown
    assert "8 min" in words(region(page, "queues"))


@pytest.mark.parametrize("permission", ["view_schedule", "edit_schedules", "view_queue"])
def test_users_who_may_view_schedules_see_that_one_paused_itself(
    permission: str, log_in_as: LogIn, worker: Worker
) -> None:
    Schedule.objects.create(
        name="nightly", task_name="a", rule={}, request={}, served_until=timezone.now(),
        paused_at=timezone.now(), pause_after_failures=3, failures_in_row=3,
    )  # fmt: skip
    page = read(log_in_as("viewer", "view_task", permission))
    may_know = permission != "view_queue"
    told = "The schedule nightly paused itself after 3 failed runs in a row."
    assert (told in words(region(page, "notices"))) == may_know
    assert ("nightly" in page) == may_know
    assert ("Needs attention" in page) == may_know


def test_a_pause_by_hand_is_no_news(log_in_as: LogIn, worker: Worker) -> None:
    control.pause("default", by="ann")
    assert "taskqueue-notice " not in read(log_in_as("viewer"))
