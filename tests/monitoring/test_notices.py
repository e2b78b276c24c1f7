"""What somebody ought to look at: idle is told from dead."""

from __future__ import annotations

import pytest
from django.utils import timezone

from taskqueue.models import Queue, Task
from taskqueue.monitoring.notices import Notice, notices
from tests.monitoring.rows import (
    HOUR,
    MINUTE,
    ago,
    make_rollup,
    make_running,
    make_schedule,
    make_task,
    make_worker,
)

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
    monkeypatch.setattr("taskqueue.monitoring.notices.queues.STALLED_SECONDS", 3600.0)
    monkeypatch.setattr("taskqueue.monitoring.notices.queues.LATE_SECONDS", 36_000.0)
    make_worker(concurrency=1, lease_seconds=3600)
    make_task(run_after=ago(50 * MINUTE))
    assert codes() == []
    make_task(run_after=ago(2 * HOUR))
    assert codes() == [("stalled", "error", "default")]
    make_running(task=make_task("running", queue_name="web"))
    assert codes() == []


def test_a_queue_whose_workers_are_busy_is_late_where_a_task_waits_for_minutes() -> None:
    make_worker(concurrency=1)
    make_running(task=make_task("running", queue_name="web"))
    make_task(run_after=ago(4 * MINUTE))
    assert codes() == []
    make_task(run_after=ago(6 * MINUTE))
    (notice,) = notices()
    assert (notice.code, notice.level, notice.subject) == ("late_queue", "warning", "default")
    assert notice.count == 2
    assert "has waited 6 min" in notice.sentence


def test_a_queue_with_very_many_tasks_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskqueue.monitoring.notices.queues.DEEP", 3)
    make_worker()
    make_task()
    make_task()
    assert codes() == []
    make_task()
    assert codes() == [("deep_queue", "warning", "default")]


def test_schedules_that_no_worker_serves_are_told_together() -> None:
    make_worker()
    make_schedule("nightly", next_at=ago(2 * HOUR))
    make_schedule("hourly", next_at=ago(3 * MINUTE))
    make_schedule("paused", next_at=ago(HOUR), paused_at=timezone.now(), paused_by="ann")
    make_schedule("on time", next_at=ago(MINUTE / 2))
    (notice,) = notices()
    assert (notice.code, notice.level, notice.subject) == ("schedule_overdue", "error", "nightly")
    assert notice.count == 2
    assert notice.seconds == pytest.approx(7200, abs=60)


def test_a_task_that_names_an_absent_worker_is_reported_and_stalls_no_queue() -> None:
    make_worker()
    pinned = {"route": 1, "pinned_to": "w9", "worker_names": ["w9"]}
    task = make_task(run_after=ago(HOUR), **pinned)
    make_task(run_after=ago(MINUTE * 2), **pinned)
    make_task(**pinned)  # Its worker may be restarted just now.
    (notice,) = notices()
    assert (notice.code, notice.level, notice.subject) == ("absent_workers", "error", "default")
    assert (notice.count, notice.example, notice.detail) == (2, str(task.pk), "w9")
    assert notice.seconds == pytest.approx(3600, abs=60)
    make_worker("w9")
    assert codes() == [("stalled", "error", "default")]


def test_a_notice_reports_tasks_that_need_more_workers_than_run() -> None:
    make_worker()
    make_task(route=1, workers=3, open_slots=3, run_after=ago(HOUR))
    (notice,) = [each for each in notices() if each.code != "stalled"]
    assert (notice.code, notice.count, notice.total) == ("too_few_workers", 1, 3)


def test_names_that_no_worker_knows_are_reported() -> None:
    make_worker()
    for _ in range(2):
        task = make_task("scheduled", parked_at=ago(HOUR), run_after=ago(-MINUTE), name="lost")
    assert codes() == [("parked", "warning", "lost")]
    Task.objects.filter(pk=task.pk).update(parked_at=ago(20 * HOUR))
    (notice,) = notices()
    assert (notice.level, notice.count, notice.example) == ("error", 2, str(task.pk))


@pytest.mark.parametrize(
    ("succeeded", "failed", "lost", "level"),
    [
        (0, 9, 0, None),
        (91, 0, 9, None),
        (90, 6, 4, "warning"),
        (109, 11, 0, None),
        (11, 10, 0, "warning"),
        (10, 4, 6, "error"),
        (13, 297, 0, "error"),
    ],
)
def test_a_queue_whose_attempts_fail_is_reported(
    succeeded: int, failed: int, lost: int, level: str | None
) -> None:
    make_worker()
    make_rollup(ago(MINUTE), succeeded=succeeded, failed=failed, lost=lost, queue_name="mail")
    make_rollup(ago(HOUR), failed=1_000, queue_name="mail")
    expected = [
        Notice(
            code="failing", level=level, subject="mail", count=failed + lost,
            total=succeeded + failed + lost,
        )
    ] if level else []  # fmt: skip
    assert notices() == expected


def test_a_schedule_that_paused_itself_or_is_in_trouble() -> None:
    make_worker()
    by_itself = {"paused_at": ago(HOUR), "pause_after_failures": 3, "failures_in_row": 3}
    make_schedule("nightly", **by_itself)
    make_schedule("by hand", **by_itself, paused_by="ann")
    make_schedule("off", **by_itself, is_enabled=False)
    make_schedule("broken", trouble="KeyError: 'x'")
    make_schedule("broken, paused by hand", trouble="odd", paused_at=ago(HOUR), paused_by="ann")
    make_schedule("removed", trouble="odd", removed_at=ago(HOUR))
    make_schedule("well", pause_after_failures=3, failures_in_row=2)
    assert notices() == [
        Notice(code="schedule_paused_itself", level="error", subject="nightly", count=3),
        Notice(code="schedule_trouble", level="error", subject="broken", detail="KeyError: 'x'"),
    ]


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
