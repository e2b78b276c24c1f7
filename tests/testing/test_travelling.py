"""`travelling` lets what waits for its time come due, by the engine's own clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from taskqueue import AfterEnd, Cron, TaskDoesNotExist, control, schedules
from taskqueue.engine.dialect import dialect_for
from taskqueue.models import Audit, Occurrence, Schedule, Task
from taskqueue.testing import arun_due, run_due, travelling
from taskqueue.testing.journeys import seconds_ahead
from tests.engine.steps import claim
from tests.sample.tasks import add, fail, noop, unique
from tests.testing.bodies import perform, play

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
Travel = Callable[[Any], None]


def now() -> datetime:
    return dialect_for(connection).now(connection)


def moved() -> float:
    """By how many whole seconds; asked again where the answer took its time."""
    while True:
        before, found, after = datetime.now(UTC), now(), datetime.now(UTC)
        if after - before < timedelta(seconds=0.4):
            return round((found - before).total_seconds())


def test_a_task_comes_due() -> None:
    result = add.using(run_after=HOUR).enqueue(1)
    assert run_due() == []
    with travelling(timedelta(minutes=59)):
        assert run_due() == []
        with travelling(60):
            assert [run.result for run in run_due()] == [result]
    result.refresh()
    assert result.finished_at is not None
    assert result.finished_at - result.enqueued_at >= HOUR
    assert moved() == 0


def test_to_a_moment() -> None:
    christmas = datetime(2040, 12, 25, 6, tzinfo=UTC)
    add.using(run_after=christmas).enqueue(1)
    begun = time.monotonic()
    with travelling(christmas - HOUR):
        assert run_due() == []
        late = (now() - christmas + HOUR).total_seconds()
        assert late < time.monotonic() - begun + 1
        with travelling(christmas):
            assert len(run_due()) == 1
    with pytest.raises(ValueError, match="no time zone"):
        travelling(datetime(2040, 12, 25, 6))


@pytest.mark.parametrize(
    "to", [1e12, -1e12, 1e300, float("inf"), timedelta.max, datetime.max.replace(tzinfo=UTC)]
)
def test_beyond_the_calendar_nobody_travels(to: Any) -> None:
    with pytest.raises(ValueError, match="Travel by at most a thousand years"), travelling(to):
        pass
    with travelling(timedelta(days=365_000)), pytest.raises(ValueError, match="at most"):
        travelling(1).start()


def test_it_ends_with_an_error_too() -> None:
    with pytest.raises(LookupError), travelling(HOUR):
        raise LookupError
    assert moved() == 0
    assert connection.execute_wrappers == []


def test_every_clock_of_the_connection_is_moved_and_nothing_that_is_stored() -> None:
    before = noop.enqueue()
    with travelling(DAY):
        assert moved() == DAY.total_seconds()
        row = Task.objects.annotate(here=Now()).get()
        assert row.enqueued_at == before.enqueued_at
        assert round((row.here - row.enqueued_at).total_seconds() / 60) == 24 * 60  # type: ignore[attr-defined]
        assert noop.enqueue().enqueued_at - before.enqueued_at >= DAY


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    "moment",
    [
        "DATETIME('now')",
        "datetime( 'NOW' , '-0 day', '+0 hours')",
        "date('now') || ' ' || time('now', 'start of day')",
        "strftime('%Y-%m-%d, it''s %H:%M', 'now')",
        "strftime('%Y-%m-%d', 'now', 'start of day')",
        "datetime(julianday('now'))",
        "datetime(unixepoch('now'), 'unixepoch')",
    ],
)
def test_the_moment_in_statements_of_the_project(moment: str) -> None:
    with travelling(datetime(2040, 12, 25, 6, tzinfo=UTC)), connection.cursor() as cursor:
        cursor.execute(f"SELECT {moment}")
        assert cursor.fetchone()[0].startswith("2040-12-25")


def test_a_word_of_the_project_is_no_moment() -> None:
    with travelling(DAY), connection.cursor() as cursor:
        cursor.execute("INSERT INTO auth_group (name) VALUES ('now') RETURNING name, lower('now')")
        assert cursor.fetchone() == ("now", "now")


def test_deadlines_and_expiry_come() -> None:
    late = noop.using(deadline=HOUR, run_after=2 * HOUR).enqueue()
    stale = noop.using(expires_after=HOUR).enqueue()
    with travelling(HOUR):
        assert run_due() == []
    late.refresh()
    stale.refresh()
    assert (late.status, stale.status) == ("failed", "cancelled")
    assert late.errors[0].exception_class_path == "taskqueue.exceptions.DeadlineExceeded"


def test_a_pause_ends() -> None:
    noop.enqueue()
    control.pause("default", until=HOUR)
    assert run_due() == []
    with travelling(HOUR):
        assert len(run_due()) == 1


def test_a_unique_key_is_free_again() -> None:
    held = unique.using(unique_for=HOUR).enqueue("a")
    run_due()
    assert not unique.using(unique_for=HOUR).enqueue("a").created
    with travelling(HOUR):
        assert unique.using(unique_for=HOUR).enqueue("a") != held


def test_retention_ends() -> None:
    kept, gone = fail.using(retention=30 * DAY).enqueue(), noop.enqueue()
    run_due()
    with travelling(8 * DAY):
        run_due()
    kept.refresh()
    with pytest.raises(TaskDoesNotExist):
        gone.refresh()


def test_a_lease_that_is_not_renewed_expires() -> None:
    result = noop.using(crash_delay=HOUR).enqueue()
    claim()
    assert run_due() == []
    with travelling(31):
        assert run_due() == []
        result.refresh()
        assert result.status == "retrying"
    with travelling(31 + HOUR.total_seconds()):
        assert [run.attempt for run in run_due()] == [2]


def test_declared_schedules_run_by_their_own_calendar() -> None:
    zone = ZoneInfo("Europe/Berlin")
    tuesday = datetime(2040, 1, 3, 12, tzinfo=UTC)
    with travelling(tuesday):
        schedules.create("mondays", add, Cron("30 6 * * 1", tz="Europe/Berlin"), args=[1])
    seen = []
    for days in range(1, 15):
        with travelling(tuesday + days * DAY):
            seen += run_due()
    nominal = [row.nominal_at.astimezone(zone) for row in Occurrence.objects.order_by("nominal_at")]
    assert len(seen) == len(nominal) == 2
    assert {(each.weekday(), each.hour, each.minute) for each in nominal} == {(0, 6, 30)}


def test_a_schedule_after_an_end_waits_for_that_end() -> None:
    schedules.create("again", noop, AfterEnd(hours=1))
    with travelling(DAY):
        assert len(run_due()) == 1
        assert run_due() == []
        with travelling(HOUR):
            assert len(run_due()) == 1
    assert Schedule.objects.get().last_status == "succeeded"


def test_a_journey_without_a_block(taskqueue_travel: Travel) -> None:
    taskqueue_travel(HOUR)
    taskqueue_travel(HOUR)
    assert moved() == 7200


def test_journeys_end_with_their_test() -> None:
    assert moved() == 0


def test_journeys_that_are_left_without_an_end(taskqueue_travel: Travel) -> None:
    travelling(HOUR).start()
    taskqueue_travel(HOUR)
    with connection.execute_wrapper(lambda execute, *statement: execute(*statement)):
        travelling(HOUR).__enter__()
    assert moved() == 3 * HOUR.total_seconds()


def test_they_end_with_their_test_too() -> None:
    assert moved() == seconds_ahead() == 0
    assert connection.execute_wrappers == []


def test_journeys_that_end_in_another_order_than_they_began() -> None:
    first, second = travelling(HOUR), travelling(DAY)
    first.start()
    second.start()
    first.stop()
    first.stop()
    assert moved() == DAY.total_seconds()
    second.stop()
    assert moved() == seconds_ahead() == 0


def test_a_body_that_travels_within_its_journey() -> None:
    def body() -> int:
        with travelling(HOUR):
            return int(moved())

    play["x"] = body
    perform.enqueue("x")
    with travelling(HOUR):
        [run] = run_due()
    assert run.result.return_value == 7200


def test_defaults_of_the_database_keep_the_real_time() -> None:
    with travelling(DAY):
        control.pause("default", by="someone")
    assert abs(Audit.objects.get().at - now()) < HOUR


async def _later() -> list[str]:
    await add.using(run_after=HOUR).aenqueue(1)
    async with travelling(HOUR):
        return [run.status for run in await arun_due()]


def test_from_async_code() -> None:
    from asgiref.sync import async_to_sync

    assert async_to_sync(_later)() == ["succeeded"]
    assert moved() == 0


def test_python_stays_where_it_is() -> None:
    before = timezone.now()
    with travelling(DAY):
        assert timezone.now() - before < HOUR
