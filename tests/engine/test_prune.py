"""Finished tasks go when their retention is over, and nothing else goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.pruning import AUDIT
from taskqueue.engine.record import write_logs
from taskqueue.engine.rows import LogLine
from taskqueue.models import Audit, Lease, Task, TaskLog
from taskqueue.results import TaskResult
from tests.engine.steps import claim, claim_one, end, end_overdue, past, prune, run_at_once, task_of
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def expire(result: TaskResult[Any]) -> None:
    Task.objects.filter(id=result.id).update(expires_at=past())
    assert end_overdue() == 1


def exceed(result: TaskResult[Any]) -> None:
    Task.objects.filter(id=result.id).update(deadline_at=past())
    assert end_overdue() == 1


ENDS = {
    "succeeded": lambda result: end(claim_one(), OutcomeKind.SUCCEEDED),
    "failed": lambda result: end(claim_one(), OutcomeKind.FAILED),
    "stopped": lambda result: end(claim_one(), OutcomeKind.CANCELLED),
    "cancelled while waiting": lambda result: result.cancel(),
    "expired": expire,
    "past its deadline": exceed,
}
each_end = pytest.mark.parametrize("finish", ENDS.values(), ids=ENDS)


def kept_for(result: TaskResult[Any]) -> timedelta | None:
    """How long after its end the task goes."""
    task = task_of(result)
    return None if task.prune_after is None else task.prune_after - task.finished_at


def is_about(one: timedelta | None, other: timedelta) -> bool:
    return one is not None and abs(one - other) < timedelta(minutes=1)


@each_end
def test_a_finished_task_is_kept_as_its_status_says(finish: Any) -> None:
    with override_settings(TASKQUEUE={"RETENTION": {"succeeded": 60, "failed": 120}}):
        result = noop.enqueue()
        finish(result)
        days = {"succeeded": 60, "failed": 120, "cancelled": 7 * 24 * 3600}
        expected = timedelta(seconds=days[task_of(result).status])
        assert is_about(kept_for(result), expected)


@each_end
def test_its_own_retention_goes_before_the_settings(finish: Any) -> None:
    result = noop.using(retention=3 * DAY).enqueue()
    finish(result)
    assert is_about(kept_for(result), 3 * DAY)


FOR_EVER = {"RETENTION": {"succeeded": None, "failed": None, "cancelled": None}}


@each_end
@pytest.mark.parametrize(
    "options",
    [{}, {"unique_key": "k"}, {"unique_key": "k", "unique_for": 1}],
    ids=["plain", "unique", "unique for a time"],
)
def test_without_retention_a_task_is_kept_for_ever(finish: Any, options: dict[str, Any]) -> None:
    with override_settings(TASKQUEUE=FOR_EVER):
        result = noop.using(**options).enqueue()
        finish(result)
    assert kept_for(result) is None


@each_end
def test_its_own_retention_holds_where_the_settings_keep_for_ever(finish: Any) -> None:
    with override_settings(TASKQUEUE=FOR_EVER):
        result = noop.using(retention=DAY).enqueue()
        finish(result)
    assert is_about(kept_for(result), DAY)


@each_end
def test_a_holder_of_a_key_is_kept_as_long_as_it_holds_it(finish: Any) -> None:
    timed = noop.using(unique_key="timed", unique_for=3 * DAY, retention=0).enqueue()
    finish(timed)
    assert task_of(timed).prune_after == task_of(timed).unique_until
    kept = noop.using(unique_key="kept", unique_for="kept", retention=0).enqueue()
    finish(kept)
    assert kept_for(kept) is None
    assert prune() == 0


@each_end
def test_a_retention_longer_than_the_key_is_held_counts(finish: Any) -> None:
    result = noop.using(unique_key="k", unique_for=1, retention=3 * DAY).enqueue()
    finish(result)
    assert is_about(kept_for(result), 3 * DAY)


@each_end
def test_a_key_that_was_released_keeps_no_task(finish: Any) -> None:
    definition = noop.using(unique_key="k", unique_for=60, retention=0)
    result = definition.enqueue()
    Task.objects.filter(id=result.id).update(unique_until=past())
    Task.objects.filter(id=result.id).update(holds_unique_key=False)
    finish(result)
    assert is_about(kept_for(result), timedelta(0))


def test_pruning_a_task_deletes_its_leases_and_log_lines_only() -> None:
    old, young, waiting = (noop.using(retention=r).enqueue() for r in (0, 60, 0))
    first, second = claim(2)
    for claimed in (first, second):
        write_logs(connection, [LogLine(claimed.lease_id, 0.0, 20, "", "said")])
        end(claimed, OutcomeKind.SUCCEEDED)
    assert prune() == 1
    assert set(Task.objects.values_list("id", flat=True)) == {young.id, waiting.id}
    assert not Lease.objects.filter(task_id=old.id).exists()
    assert not TaskLog.objects.filter(task_id=old.id).exists()
    assert Lease.objects.filter(task_id=young.id).exists()
    assert TaskLog.objects.filter(task_id=young.id).exists()
    assert prune() == 0


def test_a_task_that_has_not_finished_is_never_pruned() -> None:
    definition = noop.using(retention=0, max_attempts=2)
    definition.enqueue_many([((), {})] * 3)
    definition.using(run_after=60).enqueue()
    running, retrying = claim(2)
    end(retrying, OutcomeKind.FAILED, delay=60)
    assert prune() == 0
    assert Task.objects.count() == 4
    assert task_of(running).prune_after is None


def test_a_task_that_runs_again_is_not_pruned() -> None:
    result = noop.using(retention=0).enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    result.retry()
    assert task_of(result).prune_after is None
    assert prune() == 0


def test_pruning_goes_in_batches() -> None:
    noop.using(retention=0).enqueue_many([((), {})] * 5)
    for claimed in claim():
        end(claimed, OutcomeKind.SUCCEEDED)
    assert [prune(2), prune(2), prune(2), prune(2)] == [2, 2, 1, 0]


def prune_audit(limit: int = 100) -> int:
    return replace(AUDIT, kept=DAY).prune(connection, limit=limit)


def test_old_audit_entries_are_pruned_in_batches() -> None:
    for verb in ("a", "b", "c", "d", "e"):
        Audit.objects.create(verb=verb, subject="s")
    Audit.objects.filter(verb__in="abc").update(at=past(2 * DAY))
    assert [prune_audit(2), prune_audit(2), prune_audit(2)] == [2, 1, 0]
    assert set(Audit.objects.values_list("verb", flat=True)) == {"d", "e"}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_workers_prune_at_once() -> None:
    noop.using(retention=0).enqueue_many([((), {})] * 200)
    for claimed in claim(200):
        end(claimed, OutcomeKind.SUCCEEDED)
    pruned: list[int] = []

    def serve() -> None:
        for _ in range(20):
            pruned.append(prune(20))

    run_at_once([serve] * 4)
    assert sum(pruned) == 200
    assert not Task.objects.exists()
    assert not Lease.objects.exists()
