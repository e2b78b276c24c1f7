"""Lease and task after each outcome, and the outcomes that the fence refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.db import connection

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.record import write_logs, write_notes
from taskqueue.engine.rows import LogLine, Note
from taskqueue.models import Lease, Task, TaskLog
from tests.engine.steps import (
    claim,
    claim_one,
    end,
    lease_of,
    past,
    policy,
    task_of,
)
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


class Row(NamedTuple):
    """A line of the contract's table, and what it counts."""

    kind: OutcomeKind
    lease: str
    task: str
    options: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    failures: int = 0
    crashes: int = 0


ROWS = {
    "returned": Row(OutcomeKind.SUCCEEDED, "succeeded", "succeeded"),
    "raised, and attempts remain": Row(
        OutcomeKind.FAILED, "failed", "retrying", {"max_attempts": 2}, failures=1
    ),
    "raised at the last attempt": Row(OutcomeKind.FAILED, "failed", "failed", failures=1),
    "raised what is not retried": Row(
        OutcomeKind.FAILED,
        "failed",
        "failed",
        {"max_attempts": 9},
        {"retryable": False},
        failures=1,
    ),
    "RetryLater, whatever max_attempts says": Row(
        OutcomeKind.RETRY_LATER, "failed", "retrying", {"max_attempts": 1}, failures=1
    ),
    "Snooze": Row(OutcomeKind.SNOOZED, "returned", "scheduled"),
    "Cancel": Row(OutcomeKind.CANCELLED, "stopped", "cancelled"),
    "stop requested": Row(OutcomeKind.STOPPED, "stopped", "cancelled"),
    "its child died": Row(OutcomeKind.LOST, "lost", "retrying", crashes=1),
    "its child died at max_crashes": Row(
        OutcomeKind.LOST, "lost", "failed", {"max_crashes": 1}, crashes=1
    ),
    "its worker fenced itself": Row(OutcomeKind.FENCED, "lost", "ready"),
    "given back at a shutdown": Row(OutcomeKind.RETURNED, "returned", "ready"),
    "no definition of that name": Row(OutcomeKind.PARKED, "returned", "scheduled"),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_an_outcome_leads_where_the_contract_says(row: Row) -> None:
    result = noop.using(**row.options).enqueue()
    claimed = claim_one()
    fields = {"error_class": "E", "error_message": "why", "traceback": "where", "delay": 7.0}
    if row.kind is OutcomeKind.SUCCEEDED:
        fields = {"return_value": '{"a": 1}'}
    assert end(claimed, row.kind, **{**fields, **row.fields}) == row.task
    task, lease = task_of(result), lease_of(claimed)
    assert (lease.status, task.status) == (row.lease, row.task)
    assert (task.failures, task.crashes, task.attempt) == (row.failures, row.crashes, 1)
    assert lease.finished_at - lease.started_at == timedelta(seconds=1)
    assert task.started_at == lease.started_at
    finished = row.task in ("succeeded", "failed", "cancelled")
    assert (task.finished_at is not None) == (task.prune_after is not None) == finished
    if row.kind is not OutcomeKind.SUCCEEDED:
        assert (lease.error_class, lease.error_message, lease.traceback) == ("E", "why", "where")
        assert (task.error_class, task.error_message) == (("E", "why") if finished else ("", ""))
    assert task.return_value == ({"a": 1} if row.task == "succeeded" else None)


def test_an_unstarted_attempt_leaves_no_trace() -> None:
    result = noop.enqueue()
    before = task_of(result)
    claimed = claim_one()
    assert end(claimed, OutcomeKind.UNSTARTED) == "ready"
    task = task_of(result)
    assert not Lease.objects.exists()
    assert (task.attempt, task.failures, task.crashes, task.started_at) == (0, 0, 0, None)
    assert task.run_after == before.run_after
    assert claim_one().attempt == 1


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        (OutcomeKind.FAILED, 7),
        (OutcomeKind.RETRY_LATER, 7),
        (OutcomeKind.SNOOZED, 7),
        (OutcomeKind.PARKED, 7),
        (OutcomeKind.LOST, 90),
    ],
)
def test_the_next_attempt_is_due_after_its_delay(kind: OutcomeKind, seconds: int) -> None:
    result = noop.using(max_attempts=2, crash_delay=90).enqueue()
    now = dialect_for(connection).now
    claimed = claim_one()
    before = now(connection)
    end(claimed, kind, delay=7.0)
    delay = timedelta(seconds=seconds)
    assert before + delay <= task_of(result).run_after <= now(connection) + delay


@pytest.mark.parametrize("kind", [OutcomeKind.RETURNED, OutcomeKind.FENCED, OutcomeKind.UNSTARTED])
def test_a_returned_task_keeps_its_place_in_the_queue(kind: OutcomeKind) -> None:
    first, second = noop.enqueue(), noop.enqueue()
    end(claim(1)[0], kind)
    assert [each.task_id for each in claim()] == [str(first.id), str(second.id)]
    assert task_of(first).ready_at >= first.enqueued_at


def test_failures_are_counted_until_none_remains() -> None:
    result = noop.using(max_attempts=3, crash_delay=0, max_crashes=3).enqueue()
    statuses = []
    for kind in (
        OutcomeKind.FAILED,
        OutcomeKind.LOST,
        OutcomeKind.FAILED,
        OutcomeKind.LOST,
        OutcomeKind.FAILED,
    ):
        Task.objects.update(status="ready")
        statuses.append(end(claim_one(), kind))
    assert statuses == ["retrying"] * 4 + ["failed"]
    assert (task_of(result).failures, task_of(result).crashes) == (3, 2)


def test_a_task_lost_max_crashes_times_fails() -> None:
    result = noop.using(max_crashes=2).enqueue()
    statuses = []
    for _ in range(2):
        Task.objects.update(status="ready")
        statuses.append(end(claim_one(), OutcomeKind.LOST, error_class="AttemptLost"))
    assert statuses == ["retrying", "failed"]
    assert task_of(result).error_class == "AttemptLost"


DAY = timedelta(days=1)


def park() -> str | None:
    """Let the task be claimed once more by a worker that does not know it."""
    Task.objects.update(status="ready")
    return end(
        claim_one(), OutcomeKind.PARKED, policy=policy(park_limit=DAY), error_class="UnknownTask"
    )


def test_a_task_that_has_been_parked_for_longer_than_the_limit_fails() -> None:
    result = noop.enqueue()
    assert park() == "scheduled"
    Task.objects.update(parked_at=past(2 * DAY))
    assert park() == "failed"
    assert task_of(result).error_class == "UnknownTask"
    assert [lease.status for lease in Lease.objects.all()] == ["returned"] * 2


def test_with_a_limit_of_nothing_what_a_worker_does_not_know_fails_at_once() -> None:
    result = noop.enqueue()
    at_once = policy(park_limit=timedelta(0))
    assert end(claim_one(), OutcomeKind.PARKED, policy=at_once, error_class="U") == "failed"
    assert task_of(result).error_class == "U"
    assert (task_of(result).failures, task_of(result).finished_at is None) == (0, False)


def test_parking_counts_from_the_first_time_however_long_a_task_has_waited() -> None:
    result = noop.using(run_after=1).enqueue()
    Task.objects.update(enqueued_at=past(2 * DAY))
    assert park() == "scheduled"
    first = task_of(result).parked_at
    assert park() == "scheduled"
    assert task_of(result).parked_at == first


def test_a_task_that_ran_since_it_was_parked_may_be_parked_again() -> None:
    noop.enqueue()
    park()
    Task.objects.update(parked_at=past(2 * DAY), status="ready")
    end(claim_one(), OutcomeKind.UNSTARTED)
    assert Task.objects.get().parked_at is not None
    end(claim_one(), OutcomeKind.SNOOZED)
    assert park() == "scheduled"


def test_a_task_that_failed_as_parked_may_be_parked_again_after_a_retry() -> None:
    result = noop.enqueue()
    park()
    Task.objects.update(parked_at=past(2 * DAY))
    assert park() == "failed"
    result.refresh()
    result.retry()
    assert park() == "scheduled"


@pytest.mark.parametrize(
    "kind", [kind for kind in OutcomeKind if kind is not OutcomeKind.SUCCEEDED]
)
def test_a_task_that_was_asked_to_stop_is_cancelled_whatever_came_of_it(kind: OutcomeKind) -> None:
    result = noop.using(max_attempts=9).enqueue()
    claimed = claim_one()
    result.cancel("enough", by="anna")
    assert end(claimed, kind) == task_of(result).status == "cancelled"
    assert task_of(result).finished_at is not None


def test_a_success_counts_though_a_stop_was_asked_for_and_not_yet_seen() -> None:
    result = noop.enqueue()
    claimed = claim_one()
    result.cancel()
    assert end(claimed, OutcomeKind.SUCCEEDED) == task_of(result).status == "succeeded"


def test_an_attempt_whose_stop_was_seen_cannot_succeed() -> None:
    result = noop.enqueue()
    claimed = claim_one()
    result.cancel("enough", by="anna")
    dialect_for(connection).see_stops(connection, [claimed.lease_id])
    assert end(claimed, OutcomeKind.SUCCEEDED, return_value="1") == "cancelled"
    lease = lease_of(claimed)
    assert (lease.status, task_of(result).return_value) == ("stopped", None)
    assert (lease.stop_requested_by, lease.stop_reason) == ("anna", "enough")
    assert lease.stop_requested_at <= lease.stop_seen_at <= lease.finished_at


@pytest.mark.parametrize("kind", list(OutcomeKind))
@pytest.mark.parametrize(
    "ended_by", [OutcomeKind.LOST, OutcomeKind.SUCCEEDED, OutcomeKind.UNSTARTED]
)
def test_a_stale_lease_changes_no_row(kind: OutcomeKind, ended_by: OutcomeKind) -> None:
    result = noop.using(crash_delay=0).enqueue()
    stale = claim_one()
    end(stale, ended_by)
    if ended_by is OutcomeKind.LOST:
        Task.objects.update(status="ready")
    if ended_by is not OutcomeKind.SUCCEEDED:
        claim_one(worker="w2")

    def rows() -> list[Any]:
        return [list(Task.objects.values()), list(Lease.objects.order_by("id").values())]

    before = rows()
    assert end(stale, kind, return_value="1" if kind is OutcomeKind.SUCCEEDED else None) is None
    write_notes(connection, [Note(stale.lease_id, 5.0, 50.0, "half")])
    write_logs(connection, [LogLine(stale.lease_id, 0.0, 20, "", "late")])
    dialect_for(connection).see_stops(connection, [stale.lease_id])
    assert rows() == before
    assert not TaskLog.objects.exists()
    assert task_of(result).attempt == (2 if ended_by is OutcomeKind.LOST else 1)
