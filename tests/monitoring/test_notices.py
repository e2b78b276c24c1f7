"""What somebody ought to look at: idle is told from dead."""

from __future__ import annotations

import pytest
from django.utils import timezone

from taskqueue.models import Queue
from taskqueue.monitoring.notices import Notice, notices
from tests.monitoring.rows import HOUR, MINUTE, ago, make_running, make_task, make_worker

pytestmark = pytest.mark.django_db


def codes() -> list[tuple[str, str, str]]:
    """What there is to look at, in short."""
    return [(notice.code, notice.level, notice.subject) for notice in notices()]


def test_an_idle_queue_with_a_worker_is_well() -> None:
    Queue.objects.create(name="default")
    make_worker()
    assert notices() == []


def test_no_worker_is_a_warning_while_nothing_waits() -> None:
    make_worker(status="stopped")
    assert notices() == [Notice(code="no_worker", level="warning", count=0)]


def test_no_worker_is_an_error_once_tasks_wait() -> None:
    make_worker(seen_at=ago(5 * HOUR))
    make_task()
    make_task(queue_name="web")
    assert notices() == [Notice(code="no_worker", level="error", count=2)]


def test_tasks_that_no_living_worker_serves() -> None:
    make_worker(queues={"web": 1})
    make_task()
    assert notices() == [Notice(code="unserved_queue", level="error", subject="default", count=1)]


def test_a_quiet_worker_serves_nothing() -> None:
    make_worker(status="quiet")
    make_task()
    assert codes() == [("unserved_queue", "error", "default")]


def test_a_paused_queue_where_tasks_wait_and_no_other() -> None:
    make_worker()
    for name in ("default", "web"):
        Queue.objects.create(name=name, paused_at=timezone.now())
    make_task(run_after=ago(HOUR))
    assert codes() == [("paused_with_waiting", "warning", "default")]


def test_a_queue_stalls_where_a_task_waits_for_long_beside_a_free_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("taskqueue.monitoring.notices.STALLED_SECONDS", 3600.0)
    make_worker(concurrency=1, lease_seconds=3600)
    make_task(run_after=ago(50 * MINUTE))
    assert codes() == []
    make_task(run_after=ago(2 * HOUR))
    assert codes() == [("stalled", "error", "default")]
    make_running(task=make_task("running", queue_name="web"))
    assert codes() == []


def test_a_task_that_names_an_absent_worker_stalls_no_queue() -> None:
    make_worker()
    make_task(claimed_apart=True, pinned_to="w9", worker_names=["w9"], run_after=ago(HOUR))
    assert codes() == []
    make_worker("w9")
    assert codes() == [("stalled", "error", "default")]


def test_a_worker_that_was_lost_lately() -> None:
    make_worker()
    make_worker("lately", seen_at=ago(2 * MINUTE))
    make_worker("long ago", status="lost", seen_at=ago(2 * HOUR))
    make_worker("stopped", status="stopped", seen_at=ago(2 * MINUTE))
    assert codes() == [("lost_worker", "warning", "lately")]


def test_a_worker_in_trouble_says_what_troubles_it() -> None:
    make_worker(trouble="children do not start")
    make_worker("gone", status="stopped", trouble="long over")
    (notice,) = notices()
    assert (notice.code, notice.level, notice.subject) == ("worker_trouble", "error", "w1")
    assert notice.detail == "children do not start"


def test_an_attempt_that_seems_wedged() -> None:
    make_worker()
    lease = make_running(wedged_at=timezone.now())
    make_running()
    assert codes() == [("wedged", "warning", str(lease.task_id))]


def test_errors_stand_before_warnings() -> None:
    make_worker("w2", queues={"web": 1})
    make_running("w2", wedged_at=timezone.now())
    Queue.objects.create(name="a", paused_at=timezone.now())
    make_task(queue_name="a")
    make_task(queue_name="b")
    assert [notice.level for notice in notices()] == ["error", "warning", "warning"]
