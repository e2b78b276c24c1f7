"""The work of one step is bounded, and nobody pays for a schedule that lies behind."""

from __future__ import annotations

from datetime import timedelta
from math import floor

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue import Every, schedules
from taskqueue.core.states import TaskStatus
from taskqueue.engine.schedules import advancing
from taskqueue.engine.schedules.serving import Scheduler
from taskqueue.models import Occurrence, Schedule, Task
from tests.sample.tasks import noop
from tests.schedules.steps import HOURLY, MINUTE, at, end, hours_of, make, reasons, serve, started

pytestmark = pytest.mark.django_db
SECONDLY = Every(seconds=1)


def count_of(**chosen: object) -> int:
    """How many nominal times the rows stand for that fit."""
    return sum(row.count for row in Occurrence.objects.filter(**chosen))


def behind(hours: float, **options: object) -> Schedule:
    """A schedule of every second that nobody has served for so long."""
    return make(SECONDLY, since=timezone.now() - timedelta(hours=hours), **options)  # type: ignore[arg-type]


def test_schedules_that_lie_behind_do_not_keep_others_from_their_time() -> None:
    for number in range(30):
        make(SECONDLY, name=f"behind {number}", missed="skip")
    make(Every(hours=2), name="on time", missed="skip")

    Scheduler().step(connection, now=at(2))

    assert Task.objects.filter(schedule__name="on time").count() == 1


def test_all_that_lie_behind_get_their_turn() -> None:
    for number in range(7):
        make(SECONDLY, name=f"behind {number}", missed="skip")
    scheduler = Scheduler()

    for _ in range(3):
        scheduler.step(connection, now=at(2))

    assert Occurrence.objects.values("schedule").distinct().count() == 7


def test_resuming_makes_up_for_nothing_however_long_the_pause_was() -> None:
    behind(4, missed="all", overlap="allow")
    Schedule.objects.update(paused_at=timezone.now() - timedelta(hours=5), paused_by="ada")

    resumed_at = timezone.now()
    schedules.resume("s")
    serve(timezone.now())

    # Of the seconds that pass meanwhile: to record those of the pause takes some.
    assert Task.objects.count() <= (timezone.now() - resumed_at).total_seconds() + 1
    assert count_of(reason="Paused by ada.") >= 4 * 3600


def test_pausing_serves_what_had_come_before_by_the_policy() -> None:
    behind(1, missed="latest", overlap="allow")

    schedules.pause("s", by="ada")

    assert Task.objects.count() == 1
    assert count_of(reason__startswith="Paused") == 0
    assert count_of() >= 3600


def test_an_edited_rule_leaves_no_time_without_a_record() -> None:
    schedule = behind(4, missed="skip")

    began_at = timezone.now()
    schedules.edit("s", rule=HOURLY)

    # How many whole seconds lay behind was looked at in between.
    least, most = (
        floor(each.timestamp()) - floor(schedule.served_until.timestamp())
        for each in (began_at, timezone.now())
    )
    assert least <= count_of() <= most
    assert count_of(reason="The schedule was changed before it was served.") > 0


def test_another_policy_leaves_what_is_too_much_for_now_to_the_workers() -> None:
    behind(1, missed="all", overlap="allow")

    schedules.edit("s", args=[])
    schedules.edit("s", pause_after_failures=3)

    assert Task.objects.count() == 1000
    assert count_of(status="skipped") == 0


def test_the_runs_that_wait_cost_nothing_while_they_wait() -> None:
    make(overlap="queue_all", missed="all")
    serve(at(100))
    with CaptureQueriesContext(connection) as few:
        serve(at(101))
    for hour in range(200, 1000, 100):
        serve(at(hour))
        serve(at(hour))
    with CaptureQueriesContext(connection) as many:
        serve(at(1001))
    assert len(many) <= len(few) + 2

    schedules.pause("s")
    end(1)
    with CaptureQueriesContext(connection) as paused:
        serve(at(1002))
    assert hours_of(status="waiting") == []
    assert len(paused) < 20


def test_of_many_that_cancel_each_other_only_the_last_begins() -> None:
    make(overlap="cancel", missed="all")

    serve(at(5))

    assert started() == [5]
    assert reasons() == {hour: f"The run of {at(5).isoformat()} has come." for hour in (1, 2, 3, 4)}


def test_pausing_what_cannot_be_served_leaves_the_run_that_goes_on_alone() -> None:
    make(overlap="cancel", since=timezone.now() - timedelta(hours=2))
    serve(timezone.now() - timedelta(hours=1))
    assert Task.objects.get().status == TaskStatus.READY
    request = Schedule.objects.get().request
    request["spec"]["of_another_version"] = 1
    Schedule.objects.update(request=request)

    schedules.pause("s")

    assert Task.objects.get().status == TaskStatus.READY
    assert Schedule.objects.get().paused_at is not None


def test_a_schedule_whose_rule_fails_can_still_be_edited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make()

    def fail(*given: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(advancing, "advance", fail)

    schedules.pause("s")
    schedules.edit("s", rule=Every(hours=5))

    assert Schedule.objects.get().rule["interval"] == 5 * 3600


def test_a_run_that_is_retried_by_hand_has_not_ended() -> None:
    make(overlap="skip")
    serve(at(1))
    end(1, TaskStatus.FAILED)
    serve(at(1.5))
    assert Schedule.objects.get().failures_in_row == 1
    task = Task.objects.get()
    noop.get_result(task.id).retry()

    serve(at(2))
    assert reasons() == {2: f"The run of {at(1).isoformat()} has not ended."}

    end(1, TaskStatus.SUCCEEDED, when=at(2.5))
    serve(at(2.6))
    assert hours_of(status="ended", task_status="succeeded") == [1]
    assert Schedule.objects.get().last_status == "succeeded"
    serve(at(3) + MINUTE)
    assert started() == [1, 3]


@pytest.mark.sqlite_only
def test_a_long_history_is_not_read_to_find_unfinished_tasks() -> None:
    make()
    serve(at(1))

    with CaptureQueriesContext(connection) as queries:
        serve(at(2))

    selects = [
        query["sql"]
        for query in queries
        if query["sql"].startswith("SELECT") and "taskqueue_occurrence" in query["sql"]
    ]
    assert len(selects) >= 4
    with connection.cursor() as cursor:
        for sql in selects:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            for *_, step in cursor.fetchall():
                if step.startswith("SCAN"):
                    assert "taskqueue_schedule" in step, (step, sql)
                # By the schedule alone it would read all that ever became of it.
                assert not step.endswith("(schedule_id=?)"), (step, sql)
