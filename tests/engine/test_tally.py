"""Attempts are counted in the transaction that records them, and merged later."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F, Min, Sum
from django.db.transaction import atomic

from taskqueue.core.outcomes import Outcome, OutcomeKind, Recorded
from taskqueue.engine.record import record
from taskqueue.engine.rollups import SUMS, merge_rollups
from taskqueue.engine.tally import Subject, Tally
from taskqueue.models import Rollup
from tests.engine.steps import claim, policy
from tests.sample.tasks import add, fail

BOTH = [("mail", 10), ("default", 10)]

pytestmark = pytest.mark.django_db(transaction=True)


def ended(kind: OutcomeKind, lease_id: int, **more: object) -> Outcome:
    return Outcome(lease_id, kind, 0.1, started=0.5)._replace(**more)


def counted(tally: Tally, *outcomes: Outcome) -> dict[int, Recorded]:
    with tally.guard(), atomic():
        return record(connection, outcomes, policy=policy(), tally=tally)


def totals() -> dict[str, float]:
    sums = Rollup.objects.aggregate(**{name: Sum(name) for name in SUMS})
    return {name: value for name, value in sums.items() if value and not name.endswith("seconds")}


def test_attempts_and_ends_are_counted_by_queue_and_name() -> None:
    add.using(queue_name="mail").enqueue(1, 2)
    fail.using(max_attempts=2).enqueue()
    mail, other = sorted(claim(quotas=BOTH), key=lambda held: held.queue_name != "mail")
    tally = Tally()
    counted(tally, ended(OutcomeKind.SUCCEEDED, mail.lease_id))
    counted(tally, ended(OutcomeKind.FAILED, other.lease_id))

    rows = {(row.queue_name, row.name): row for row in Rollup.objects.all()}
    succeeded, failed = rows["mail", add.name], rows["default", fail.name]
    assert (succeeded.succeeded, succeeded.tasks_succeeded, succeeded.failed) == (1, 1, 0)
    assert (failed.failed, failed.tasks_failed) == (1, 0), "it is tried again"
    assert succeeded.run_seconds == pytest.approx(0.4)
    assert succeeded.run_times == {"-5": 1}
    assert str(succeeded.slowest_task_id) == mail.task_id


def test_the_wait_runs_from_being_ready_to_the_start_of_the_body() -> None:
    add.enqueue(1, 2)
    [held] = claim()
    ready_at = time.monotonic() - 2.5
    subject = Subject(held.task_id, "default", held.name, ready_at)
    counted(Tally({held.lease_id: subject}.get), ended(OutcomeKind.SUCCEEDED, held.lease_id))
    [row] = Rollup.objects.all()
    # The body started half a second before it was counted, which was by now.
    assert 1.99 < row.wait_seconds < time.monotonic() - ready_at - 0.5 + 0.01
    assert sum(row.wait_times.values()) == 1


def test_batches_of_one_process_add_up_in_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskqueue.engine.tally.PART_SECONDS", 3600.0)
    for _ in range(3):
        add.enqueue(1, 2)
    tally = Tally()
    for held in claim():
        counted(tally, ended(OutcomeKind.SUCCEEDED, held.lease_id))
    [row] = Rollup.objects.all()
    assert (row.succeeded, row.run_times) == (3, {"-5": 3})


def test_an_outcome_that_was_not_recorded_is_not_counted() -> None:
    add.enqueue(1, 2)
    [held] = claim()
    tally = Tally()
    counted(tally, ended(OutcomeKind.SUCCEEDED, held.lease_id))
    assert counted(tally, ended(OutcomeKind.SUCCEEDED, held.lease_id)) == {}
    assert totals() == {"succeeded": 1, "tasks_succeeded": 1}


def recorded_in_vain(tally: Tally, outcome: Outcome) -> None:
    with tally.guard(), atomic():
        record(connection, [outcome], policy=policy(), tally=tally)
        raise ZeroDivisionError


def test_an_outcome_recorded_again_after_a_rollback_is_counted_once() -> None:
    for _ in range(2):
        add.enqueue(1, 2)
    first, second = claim()
    tally = Tally()
    counted(tally, ended(OutcomeKind.SUCCEEDED, first.lease_id))
    with pytest.raises(ZeroDivisionError):
        recorded_in_vain(tally, ended(OutcomeKind.SUCCEEDED, second.lease_id))
    assert totals() == {"succeeded": 1, "tasks_succeeded": 1}
    counted(tally, ended(OutcomeKind.SUCCEEDED, second.lease_id))
    assert totals() == {"succeeded": 2, "tasks_succeeded": 2}


def test_a_stopped_attempt_counts_as_stopped_and_a_withdrawn_one_as_nothing() -> None:
    for _ in range(2):
        add.enqueue(1, 2)
    first, second = claim()
    tally = Tally()
    counted(
        tally,
        ended(OutcomeKind.STOPPED, first.lease_id),
        Outcome(second.lease_id, OutcomeKind.UNSTARTED, 0.0),
    )
    assert totals() == {"stopped": 1, "tasks_cancelled": 1}


def grow_older(by: timedelta) -> None:
    Rollup.objects.update(starts_at=F("starts_at") - by)


def test_rows_of_processes_become_minutes_then_quarters_then_hours_and_the_sums_stay() -> None:
    for number in range(6):
        add.using(queue_name="mail" if number % 2 else "default").enqueue(1, 2)
    for held in claim(quotas=BOTH):
        counted(Tally(), ended(OutcomeKind.SUCCEEDED, held.lease_id))
    before = totals()
    assert Rollup.objects.count() == 6
    # Of one minute, also where another began meanwhile.
    Rollup.objects.update(starts_at=Rollup.objects.aggregate(first=Min("starts_at"))["first"])
    assert merge_rollups(connection) == 0, "they may still be written"
    for age, resolution in (
        (timedelta(minutes=3), 60),
        (timedelta(hours=3), 900),
        (timedelta(hours=27), 3600),
    ):
        grow_older(age)
        merge_rollups(connection)
        assert set(Rollup.objects.values_list("resolution", flat=True)) == {resolution}
        assert Rollup.objects.filter(starts_at__second=0).count() == 2
        assert totals() == before
        assert {sum(row.run_times.values()) for row in Rollup.objects.all()} == {3}


def test_a_late_rollup_is_added_to_its_minute() -> None:
    for _ in range(2):
        add.enqueue(1, 2)
    first, second = claim()
    counted(Tally(), ended(OutcomeKind.SUCCEEDED, first.lease_id))
    grow_older(timedelta(minutes=3))
    counted(Tally(), ended(OutcomeKind.SUCCEEDED, second.lease_id))
    merge_rollups(connection)
    late = Rollup.objects.get(resolution=0)
    late.starts_at = Rollup.objects.get(resolution=60).starts_at + timedelta(seconds=30)
    late.save()
    merge_rollups(connection)
    [row] = Rollup.objects.all()
    assert (row.resolution, row.succeeded, sum(row.run_times.values())) == (60, 2, 2)


def test_rollups_are_kept_for_ninety_days() -> None:
    add.enqueue(1, 2)
    [held] = claim()
    counted(Tally(), ended(OutcomeKind.SUCCEEDED, held.lease_id))
    grow_older(timedelta(days=91))
    merge_rollups(connection)
    assert not Rollup.objects.exists()
