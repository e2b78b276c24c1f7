"""Due tasks become ready, overdue ones end, and the forecast says when to look again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine import forecast
from taskqueue.engine.ends import NEXT_END
from taskqueue.engine.forecast import NEXT_DUE
from taskqueue.engine.takeover import NEXT_EXPIRY
from taskqueue.engine.workers import RANK
from taskqueue.models import Task, Worker
from taskqueue.results import TaskResult
from taskqueue.worker.duties import LOOKS
from tests.engine.steps import (
    another_connection,
    claim,
    claim_one,
    end,
    end_overdue,
    make_due,
    past,
    promote,
    run_at_once,
    run_out,
    task_of,
)
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
later = noop.using(run_after=60)


def overdue(result: TaskResult[None]) -> None:
    Task.objects.filter(id=result.id).update(deadline_at=past())


def expire(result: TaskResult[None]) -> None:
    Task.objects.filter(id=result.id).update(expires_at=past())


def kept_for(task: Task) -> timedelta:
    """How long after its end a task goes; the two moments were read one after the other."""
    return timedelta(minutes=round((task.prune_after - task.finished_at).total_seconds() / 60))


def test_a_task_whose_time_has_come_becomes_ready() -> None:
    due, early = later.enqueue(), later.enqueue()
    make_due(due)
    outlook = promote()
    assert (outlook.promoted, outlook.has_ready) == (1, True)
    assert (task_of(due).status, task_of(early).status) == ("ready", "scheduled")
    assert task_of(due).ready_at > due.enqueued_at
    assert promote().promoted == 0


def test_a_retrying_task_whose_time_has_come_becomes_ready() -> None:
    result = noop.using(max_attempts=2).enqueue()
    end(claim_one(), OutcomeKind.FAILED, delay=60)
    assert promote().promoted == 0
    make_due(result)
    assert promote().promoted == 1
    assert task_of(result).status == "ready"


def test_a_promotion_goes_in_batches_first_due_first() -> None:
    results = later.enqueue_many([((), {})] * 3)
    for minutes, result in enumerate(results):
        moment = past() - timedelta(minutes=minutes)
        Task.objects.filter(id=result.id).update(run_after=moment)
    assert promote(2).promoted == 2
    assert [task_of(result).status for result in results] == ["scheduled", "ready", "ready"]


def test_a_promoted_task_stands_in_the_queue_by_its_own_time() -> None:
    waited = later.enqueue()
    fresh = noop.enqueue()
    make_due(waited)
    promote()
    assert [each.task_id for each in claim()] == [str(waited.id), str(fresh.id)]


def test_nothing_to_come_is_told_as_nothing() -> None:
    outlook = promote()
    assert (outlook.promoted, outlook.has_ready, outlook.number(RANK)) == (0, False, 0)
    assert outlook.until(NEXT_DUE) is None
    assert outlook.until(NEXT_END) is None
    assert outlook.until(NEXT_EXPIRY) is None


def test_the_outlook_tells_the_seconds_until_what_comes_next() -> None:
    later.enqueue()
    noop.using(run_after=500).enqueue()
    noop.using(deadline=300).enqueue()
    noop.using(expires_after=200).enqueue()
    outlook = promote()
    assert outlook.until(NEXT_DUE) == pytest.approx(60, abs=30)
    assert outlook.until(NEXT_END) == pytest.approx(200, abs=30)
    assert outlook.until(NEXT_EXPIRY) is None
    assert outlook.has_ready
    claim()
    outlook = promote()
    assert outlook.until(NEXT_EXPIRY) == pytest.approx(30, abs=29)
    assert not outlook.has_ready


def test_a_lease_that_ran_out_shows_as_an_expiry_that_is_over() -> None:
    noop.enqueue()
    run_out(claim_one())
    assert promote().until(NEXT_EXPIRY) == pytest.approx(-3600, abs=60)


def test_a_worker_ranks_behind_the_living_that_came_before_it() -> None:
    now = timezone.now()
    for name, status, seen_at in (
        ("alive", "running", now),
        ("silent", "running", now - timedelta(hours=1)),
        ("stopped", "stopped", now),
        ("last", "running", now),
    ):
        last = Worker.objects.create(
            name=name, status=status, seen_at=seen_at, started_at=now, host="h", pid=1
        )
    assert forecast.promote(connection, LOOKS, worker_id=last.id, limit=1).number(RANK) == 1


@pytest.mark.parametrize("run_after", [0, 60])
def test_a_waiting_task_past_its_deadline_fails(run_after: int) -> None:
    result = noop.using(deadline=30, run_after=run_after).enqueue()
    assert end_overdue() == 0
    overdue(result)
    assert (promote().until(NEXT_END) or 0) < 0
    assert end_overdue() == 1
    task = task_of(result)
    assert (task.status, task.error_class) == (
        "failed",
        "taskqueue.exceptions.DeadlineExceeded",
    )
    assert kept_for(task) == timedelta(days=30)
    result.refresh()
    assert result.errors[0].message == "The deadline passed before the task ended."
    assert end_overdue() == 0


def test_a_retrying_task_past_its_deadline_fails() -> None:
    result = noop.using(deadline=30, max_attempts=2).enqueue()
    end(claim_one(), OutcomeKind.FAILED, delay=60)
    overdue(result)
    assert end_overdue() == 1
    assert task_of(result).status == "failed"


def test_a_task_that_is_past_its_deadline_and_has_expired_fails_once() -> None:
    both, expired = (noop.using(deadline=30, expires_after=30).enqueue() for _ in range(2))
    overdue(both)
    for result in (both, expired):
        expire(result)
    assert (end_overdue(), end_overdue()) == (2, 0)
    assert (task_of(both).status, task_of(expired).status) == ("failed", "cancelled")


def test_a_running_task_past_its_deadline_is_its_workers_to_end() -> None:
    result = noop.using(deadline=30, expires_after=30).enqueue()
    claimed = claim_one()
    overdue(result)
    expire(result)
    assert end_overdue() == 0
    assert end(claimed, OutcomeKind.SUCCEEDED) == "succeeded"


def test_a_task_that_did_not_start_in_time_is_cancelled() -> None:
    result = noop.using(expires_after=30).enqueue()
    expire(result)
    assert end_overdue() == 1
    task = task_of(result)
    assert (task.status, task.error_class) == ("cancelled", "")
    assert task.error_message == "Not started before it expired."
    assert kept_for(task) == timedelta(days=7)


def test_a_task_that_has_started_once_does_not_expire() -> None:
    result = noop.using(expires_after=30, max_attempts=2).enqueue()
    end(claim_one(), OutcomeKind.FAILED, delay=60)
    expire(result)
    assert promote().until(NEXT_END) is None
    assert end_overdue() == 0


def test_an_end_goes_in_batches() -> None:
    for result in noop.using(deadline=30).enqueue_many([((), {})] * 3):
        overdue(result)
    assert (end_overdue(2), end_overdue(2), end_overdue(2)) == (2, 1, 0)


@pytest.mark.parametrize("unique_for", ["finished", "started"])
@pytest.mark.parametrize("cause", [overdue, expire])
def test_an_overdue_task_releases_its_key(
    unique_for: str, cause: Callable[[TaskResult[None]], None]
) -> None:
    definition = noop.using(unique_key="k", unique_for=unique_for, expires_after=30)
    cause(definition.enqueue())
    end_overdue()
    assert definition.enqueue().created


@pytest.mark.parametrize("cause", [overdue, expire])
def test_an_overdue_task_is_kept_as_long_as_any_finished_one(
    cause: Callable[[TaskResult[None]], None],
) -> None:
    own = noop.using(retention=60)
    kept = noop.using(unique_key="kept", unique_for="kept", retention=60)
    held = noop.using(unique_key="held", unique_for=timedelta(days=100))
    results = [definition.enqueue() for definition in (own, kept, held)]
    for result in results:
        cause(result)
    assert end_overdue() == 3
    tasks = [task_of(result) for result in results]
    assert kept_for(tasks[0]) == timedelta(seconds=60)
    assert (tasks[1].prune_after, tasks[1].holds_unique_key) == (None, True)
    assert (tasks[2].prune_after, tasks[2].holds_unique_key) == (tasks[2].unique_until, True)


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_promotion_skips_tasks_that_another_one_has_locked() -> None:
    for result in later.enqueue_many([((), {})] * 3):
        make_due(result)
    with another_connection() as other, transaction.atomic():
        assert promote(2).promoted == 2
        assert forecast.promote(other, LOOKS, worker_id=0, limit=9).promoted == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_workers_promote_each_task_once() -> None:
    for result in later.enqueue_many([((), {})] * 300):
        make_due(result)
    promoted: list[int] = []

    def serve() -> None:
        for _ in range(30):
            promoted.append(promote(20).promoted)

    run_at_once([serve] * 4)
    assert sum(promoted) == 300
    assert Task.objects.filter(status="ready").count() == 300
