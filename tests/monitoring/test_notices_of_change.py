"""Notices of changes: failures, kinds of error, backlogs, run times."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue.models import Partition, Task, Total
from taskqueue.monitoring import performance
from taskqueue.monitoring.notices import Notice, Situation, notices
from taskqueue.monitoring.notices.failing import NameRate
from taskqueue.monitoring.notices.failures import has_jumped, usual_share
from taskqueue.monitoring.notices.workers import is_long
from tests.monitoring.rows import (
    HOUR,
    MINUTE,
    ago,
    histogram,
    make_rollup,
    make_running,
    make_schedule,
    make_task,
    make_worker,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def of_code(code: str) -> list[Notice]:
    return [notice for notice in notices() if notice.code == code]


def past(*, failed: int, succeeded: int, hours: int = 0) -> None:
    """Attempts of each of the past days, so many hours off this time of day."""
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for days in range(1, 8):
        make_rollup(hour - days * DAY + hours * HOUR, failed=failed, succeeded=succeeded)


def test_a_failure_rate_that_jumps_is_reported_with_the_usual_one() -> None:
    make_worker()
    make_rollup(ago(MINUTE), failed=12, succeeded=88)
    past(failed=1, succeeded=99)
    (notice,) = of_code("failure_jump")
    assert (notice.subject, notice.level) == ("shop.tasks.send", "warning")
    assert (notice.count, notice.total, notice.detail) == (12, 100, "1.0 %")
    assert "12 of 100 attempts failed within the last 15 minutes" in notice.sentence


@pytest.mark.parametrize(
    ("failed", "succeeded", "hours"),
    [
        (10, 90, 0),  # It fails as often as ever.
        (1, 5, 0),  # Too little is known.
        (1, 99, 5),  # Of another time of day.
        (0, 0, 0),
    ],
)
def test_a_failure_rate_that_is_usual_or_beside_which_none_is_known_is_no_jump(
    failed: int, succeeded: int, hours: int
) -> None:
    make_rollup(ago(MINUTE), failed=12, succeeded=88)
    past(failed=failed, succeeded=succeeded, hours=hours)
    assert of_code("failure_jump") == []


@pytest.mark.parametrize(
    ("failed", "total", "usual", "jumps"),
    [
        (10, 20, 0.01, True),
        (10, 1000, 0.01, False),
        (29, 1000, 0.01, False),  # Not three times as many.
        (31, 1000, 0.01, True),
        (4, 100, 0.01, False),  # Three deviations of chance are more.
        (5, 100, 0.01, True),
        (500, 1000, 0.2, False),
    ],
)
def test_a_jump_is_more_than_three_times_as_many_and_more_than_chance(
    failed: int, total: int, usual: float, jumps: bool
) -> None:
    assert has_jumped(failed, total, usual) is jumps


def test_of_a_name_that_never_failed_the_usual_share_is_not_quite_nothing() -> None:
    assert usual_share(NameRate("a", 10, 20, 0, 98)) == 0.01
    assert usual_share(NameRate("a", 10, 20, 0, 49)) is None


def fail(error_class: str, when: datetime, **fields: Any) -> str:
    return str(make_task("failed", error_class=error_class, finished_at=when, **fields).pk)


def test_a_kind_of_error_is_new_for_a_day_and_only_where_it_was_not_seen_before() -> None:
    make_worker()
    fail("shop.Old", ago(3 * DAY))
    fail("shop.Old", ago(MINUTE))
    fail("shop.Yesterday", ago(DAY + HOUR))
    first = fail("shop.New", ago(2 * HOUR))
    fail("shop.New", ago(HOUR))
    other = fail("shop.Old", ago(HOUR), name="shop.tasks.bill")
    found = of_code("new_error")
    assert [(each.subject, each.detail, each.count, each.example) for each in found] == [
        ("shop.tasks.bill", "shop.Old", 1, other),
        ("shop.tasks.send", "shop.New", 2, first),
    ]
    assert found[1].since is not None
    assert found[1].seconds == pytest.approx(7200, abs=60)
    assert "fail with shop.New. Failed tasks: 2. The first, " in found[1].sentence
    assert found[1].sentence.endswith(" ago.")
    make_worker("w2")
    assert len(of_code("new_error")) == 2


def test_new_kinds_are_found_by_one_probe_a_kind(django_assert_num_queries: Any) -> None:
    for number in range(30):
        fail(f"shop.Error{number:02}", ago(HOUR), name=f"shop.tasks.task_{number % 7}")
    with django_assert_num_queries(1):
        found = Situation().failing.new_errors
    assert len(found) == 10  # The newest.


def test_many_errors_of_taskqueue_itself_hide_none_of_the_project() -> None:
    make_worker()
    first = fail("shop.New", ago(HOUR))
    for number in range(12):
        fail(f"x.Error{number:02}", ago(MINUTE), name="taskqueue.webhooks.deliver")
    assert [each.example for each in of_code("new_error")] == [first]


def enqueue(number: int, when: datetime, **fields: Any) -> None:
    Task.objects.bulk_create(
        Task(name="a", crash_delay=MINUTE, run_after=when, **fields) for _ in range(number)
    )


def test_a_backlog_grows_where_more_came_than_was_done_and_more_still_comes() -> None:
    make_worker(concurrency=1)
    make_running(task=make_task("running"))
    enqueue(100, ago(10 * MINUTE))
    enqueue(60, ago(MINUTE), priority=5)
    make_rollup(ago(5 * MINUTE), succeeded=50)
    (notice,) = of_code("growing_backlog")
    assert (notice.subject, notice.count, notice.total, notice.detail) == (
        "default",
        160,
        160,
        "50",
    )
    make_rollup(ago(4 * MINUTE), succeeded=20)
    assert of_code("growing_backlog") == []


def test_a_batch_that_came_at_once_and_is_being_done_is_no_growing_backlog() -> None:
    make_worker(concurrency=1)
    make_running(task=make_task("running"))
    enqueue(200, ago(7 * MINUTE))
    make_rollup(ago(5 * MINUTE), succeeded=10)
    assert of_code("growing_backlog") == []


def test_a_run_is_long_beside_the_usual_time_of_its_name() -> None:
    make_worker()
    lease = make_running(started_at=ago(10 * MINUTE))
    assert of_code("long_run") == []
    Total.objects.create(
        kind="name", label="shop.tasks.send", run_times=histogram([60.0] * 20), succeeded=20
    )
    (notice,) = of_code("long_run")
    assert (notice.subject, notice.detail) == (str(lease.task_id), "shop.tasks.send")
    assert notice.seconds == pytest.approx(600, abs=60)
    assert notice.usual_seconds == pytest.approx(60, rel=0.2)
    assert notice.since == lease.started_at


def test_a_name_that_the_totals_do_not_tell_apart_has_the_usual_time_of_the_week() -> None:
    make_worker()
    make_running(started_at=ago(2 * HOUR))
    assert [each.usual_seconds for each in of_code("long_run")] == [None]
    make_rollup(ago(2 * DAY), succeeded=20, run=[5000.0] * 20)
    performance.cache.forget()
    assert of_code("long_run") == []


@pytest.mark.parametrize(
    ("seconds", "usual", "is_told"),
    [
        (3599, None, False), (3601, None, True), (59, 1.0, False), (61, 1.0, True),
        (499, 100.0, False), (501, 100.0, True),
    ],
)  # fmt: skip
def test_without_history_a_run_is_long_after_an_hour(
    seconds: float, usual: float | None, is_told: bool
) -> None:
    assert is_long(seconds, usual) is is_told


def test_an_attempt_that_seems_wedged_is_not_told_twice() -> None:
    make_worker()
    make_running(started_at=ago(5 * HOUR), wedged_at=ago(HOUR))
    assert [each.code for each in notices()] == ["wedged"]


def test_tags_that_no_worker_of_the_queue_has_are_told_once_a_lane() -> None:
    make_worker(tags=["gpu"])
    for number, lane in enumerate(['{"tags":["gpu"]}', '{"tags":["gpu","large"]}', "", ""]):
        for queue in ("default", "mail"):
            Partition.objects.create(
                id=f"00000000-0000-0000-0000-{number:011}{int(queue == 'mail')}",
                queue_name=queue, lane=lane, state="open",
            )  # fmt: skip
    found = of_code("absent_tags")
    assert [(each.subject, each.level, each.detail) for each in found] == [
        ("default", "error", "gpu,large"),
        ("mail", "error", "gpu,large"),
    ]
    assert "--tags gpu,large" in found[0].remedy


def test_each_notice_says_since_when_where_that_is_known() -> None:
    make_worker("w1", queues={"web": 1})
    make_worker("gone", status="lost", seen_at=ago(10 * MINUTE))
    make_task(run_after=ago(HOUR))
    make_schedule("nightly", next_at=ago(2 * HOUR))
    make_schedule("feeds", paused_at=ago(3 * HOUR), pause_after_failures=1, failures_in_row=1)
    since = {each.code: each.since for each in notices()}
    expected = {
        "unserved_queue": HOUR, "schedule_overdue": 2 * HOUR, "schedule_paused_itself": 3 * HOUR,
        "lost_worker": 10 * MINUTE,
    }  # fmt: skip
    assert since.keys() == expected.keys()
    for code, duration in expected.items():
        when = since[code]
        assert when is not None
        assert abs((ago(duration) - when).total_seconds()) < 60, code


def test_a_healthy_system_is_judged_in_few_statements(django_assert_max_num_queries: Any) -> None:
    make_worker()
    with django_assert_max_num_queries(10):
        assert notices() == []
