"""People can end the attempts of lost workers at once, however long their leases are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from taskqueue import TransitionRefused
from taskqueue.control import (
    TaskFilter,
    cancel,
    cancel_many,
    delete,
    dry_run,
    request_stop,
    request_stop_many,
    retry,
    retry_many,
)
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine.connections import orm_transaction
from taskqueue.engine.control.audit import person
from taskqueue.engine.control.changes import retry_each
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.tasks import cancel_each, request_stop_each
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.lost import ENDED_BY_HAND, lost_attempts
from taskqueue.engine.operations import serving
from taskqueue.engine.operations.asking import start_operation
from taskqueue.engine.rows import Held
from taskqueue.engine.takeover import LOST
from taskqueue.models import Audit, Lease, Rollup, Task, Worker
from taskqueue.models.worker import WorkerStatus
from tests.engine.lost_workers import YEAR, held_by_lost, lose, worker_row
from tests.engine.steps import (
    another_connection,
    claim,
    claim_one,
    end,
    future,
    lease_of,
    past,
    task_of,
)
from tests.engine.test_apart import take
from tests.management.test_taskqueue import run
from tests.sample.tasks import noop
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db


def is_lost(claimed: Any) -> bool:
    task_id = task_of(claimed).id
    return bool(lost_attempts(connection, [task_id]))


@pytest.mark.parametrize("verb", [cancel, request_stop])
def test_a_stop_ends_the_attempt_of_a_lost_worker_at_once(verb: Callable[..., str]) -> None:
    result, claimed = held_by_lost()
    assert verb(result.id, by="anna", reason="its host is gone") == "cancelled"
    lease, task = lease_of(claimed), task_of(result)
    assert (lease.status, lease.error_class, lease.error_message) == ("lost", LOST, ENDED_BY_HAND)
    assert (lease.stop_requested_by, lease.stop_reason) == ("anna", "its host is gone")
    assert lease.stop_seen_at is None
    assert (task.status, task.finished_at is None) == ("cancelled", False)


def test_the_audit_names_who_ended_the_attempt_and_that_its_worker_was_lost() -> None:
    result, _ = held_by_lost()
    request_stop(result.id, by="anna", reason="its host is gone")
    line = Audit.objects.get()
    assert (line.actor, line.verb, line.subject) == ("anna", "stop", str(result.id))
    assert (line.reason, line.before) == ("its host is gone", "running")
    assert line.detail == "attempt 1 ended: its worker 'w1' was lost"


def test_the_audit_names_what_the_person_did() -> None:
    result, _ = held_by_lost()
    cancel(result.id, by="anna")
    line = Audit.objects.get()
    assert (line.verb, line.before) == ("cancel", "running")
    assert line.detail == "attempt 1 ended: its worker 'w1' was lost"
    result, _ = held_by_lost()
    run("stop", str(result.id), "--yes")
    assert Audit.objects.get(subject=str(result.id)).verb == "stop"


def test_who_gave_no_reason_is_named_without_one() -> None:
    result, _ = held_by_lost()
    request_stop(result.id, by="anna")
    result.refresh()
    assert (result.cancelled_by, result.cancel_reason) == ("anna", "")


def test_a_lost_worker_that_returns_changes_nothing_and_learns_of_the_end() -> None:
    result, claimed = held_by_lost()
    request_stop(result.id)
    assert end(claimed, OutcomeKind.SUCCEEDED, return_value="1") is None
    renewal = dialect_for(connection).renew(connection, [Held(claimed.lease_id, 30.0, None)])
    assert renewal.ended == {claimed.lease_id}
    assert task_of(result).status == "cancelled"


def test_a_retry_makes_the_task_of_a_lost_worker_ready_at_once() -> None:
    result, claimed = held_by_lost(noop.using(crash_delay=3600, max_crashes=1))
    Task.objects.filter(id=result.id).update(failures=1, crashes=2, deadline_at=future())
    retry(result.id, by="anna", reason="its host is gone")
    lease, task = lease_of(claimed), task_of(result)
    assert (lease.status, lease.error_message) == ("lost", ENDED_BY_HAND)
    assert (task.status, task.failures, task.crashes) == ("ready", 0, 0)
    assert (task.attempts_before_retry, task.deadline_at) == (1, None)
    assert Audit.objects.get().detail == "attempt 1 ended: its worker 'w1' was lost"
    second = claim_one(worker="w2")
    assert second.attempt == 2
    assert end(claimed, OutcomeKind.SUCCEEDED) is None
    assert end(second, OutcomeKind.SUCCEEDED) == "succeeded"


def test_a_task_that_was_asked_to_stop_before_its_worker_was_lost_is_freed_by_a_second_stop() -> (
    None
):
    result = noop.using(lease_duration=YEAR).enqueue()
    worker_row()
    claimed = claim_one()
    assert request_stop(result.id, by="anna", reason="first") == "running"
    lose()
    assert request_stop(result.id, by="anna") == "cancelled"
    assert lease_of(claimed).stop_reason == "first"
    assert Audit.objects.count() == 2


def test_a_retry_after_a_stop_that_nobody_saw_runs_the_task_again() -> None:
    result, claimed = held_by_lost()
    Lease.objects.filter(id=claimed.lease_id).update(stop_requested_at=past())
    retry(result.id)
    assert task_of(result).status == "ready"
    assert claim_one(worker="w2").attempt == 2


def test_a_worker_that_pings_within_its_lease_is_asked_as_ever() -> None:
    result = noop.using(lease_duration=YEAR).enqueue()
    worker_row()
    claimed = claim_one()
    assert not is_lost(claimed)
    assert request_stop(result.id) == "running"
    assert lease_of(claimed).status == "running"
    with pytest.raises(TransitionRefused, match="running tasks of lost workers can be retried"):
        retry(result.id)


def test_a_lease_from_before_another_process_took_the_name_is_lost() -> None:
    noop.using(lease_duration=YEAR).enqueue()
    worker_row()
    claimed = claim_one()
    Worker.objects.update(started_at=future(), seen_at=future())
    assert is_lost(claimed)


def test_the_lease_of_a_stopped_worker_is_lost() -> None:
    noop.using(lease_duration=YEAR).enqueue()
    worker_row(status=WorkerStatus.STOPPED.value)
    assert is_lost(claim_one())


def test_a_worker_without_a_row_is_lost_once_it_would_have_noticed(settings: Any) -> None:
    noop.using(lease_duration=YEAR).enqueue()
    claimed = claim_one()
    assert not is_lost(claimed)
    settings.TASKQUEUE = {"LEASE_DURATION": 1, "PING_INTERVAL": 0.1}
    Lease.objects.update(claimed_at=past())
    # On PostgreSQL the test's own server may have started less than a lease ago.
    wait_until(lambda: is_lost(claimed), 60, what="the end of the grace")


@pytest.mark.postgresql_only
def test_nobody_is_lost_within_a_lease_of_the_servers_own_start() -> None:
    noop.using(lease_duration=YEAR).enqueue()
    century = timedelta(days=36500).total_seconds()
    worker_row(seen_at=past(2 * YEAR * 100), lease_seconds=century)
    assert not is_lost(claim_one())


def test_those_who_may_not_end_what_runs_retry_only_what_has_finished() -> None:
    result, claimed = held_by_lost()
    with pytest.raises(TransitionRefused, match="running"):
        TASK_VERBS["retry"].act(result.id, statuses=FINISHED)
    assert lease_of(claimed).status == "running"


def test_a_delete_is_refused_and_names_the_remedy() -> None:
    result, _ = held_by_lost()
    with pytest.raises(TransitionRefused, match="Its worker is lost: cancel"):
        delete(result.id)
    cancel(result.id)
    delete(result.id)
    assert not Task.objects.exists()


def test_of_several_workers_only_the_attempt_of_the_lost_worker_ends() -> None:
    result = noop.using(workers=2, lease_duration=YEAR).enqueue()
    for name in ("a", "b"):
        worker_row(name)
    (lost,), (living,) = take("a"), take("b")
    lose("a")
    assert request_stop(result.id, by="anna") == "running"
    assert (lease_of(lost).status, lease_of(living).status) == ("lost", "running")
    assert lease_of(living).stop_requested_by == "anna"
    task = task_of(result)
    assert (task.running_leases, task.open_slots) == (1, 0)
    assert end(living, OutcomeKind.STOPPED) == "cancelled"


def test_a_retry_opens_the_place_of_the_lost_worker_and_leaves_the_others_alone() -> None:
    result = noop.using(workers=2, lease_duration=YEAR).enqueue()
    for name in ("a", "b"):
        worker_row(name)
    (lost,), (living,) = take("a"), take("b")
    lose("a")
    retry(result.id)
    assert (lease_of(lost).status, lease_of(living).status) == ("lost", "running")
    task = task_of(result)
    assert (task.status, task.running_leases, task.open_slots) == ("running", 1, 1)
    (third,) = take("c")
    assert end(living, OutcomeKind.SUCCEEDED, return_value="1") == "running"
    assert end(third, OutcomeKind.SUCCEEDED, return_value="2") == "succeeded"


def test_a_stop_of_many_ends_what_lost_workers_hold() -> None:
    results = [held_by_lost()[0] for _ in range(3)]
    which = TaskFilter(worker="w1")
    assert dry_run(which, "stop") == (3, 3)
    assert request_stop_many(which, by="anna") == (3, 3)
    assert {task_of(result).status for result in results} == {"cancelled"}
    assert Audit.objects.filter(detail__contains="was lost").count() == 3


def test_a_cancel_of_many_ends_what_lost_workers_hold() -> None:
    result, _ = held_by_lost()
    noop.enqueue()
    assert cancel_many(TaskFilter(everything=True)) == (2, 2)
    assert task_of(result).status == "cancelled"


def test_a_retry_of_many_frees_running_tasks_only_where_the_filter_names_them() -> None:
    lost, _ = held_by_lost()
    worker_row("w2")
    lively = noop.using(lease_duration=YEAR).enqueue()
    claim_one(worker="w2")
    for which, expected in (
        (TaskFilter(everything=True), 0),
        (TaskFilter(statuses=["running"]), 1),
    ):
        assert dry_run(which, "retry").done == expected
        assert retry_many(which).done == expected
    assert (task_of(lost).status, task_of(lively).status) == ("ready", "running")


@pytest.mark.parametrize(("verb", "status"), [("stop", "cancelled"), ("retry", "ready")])
def test_an_operation_ends_what_lost_workers_hold(verb: str, status: str) -> None:
    result, _ = held_by_lost()
    start_operation(verb, TaskFilter(statuses=["running"]), by="anna")
    while serving.step(connection):  # type: ignore[arg-type]
        pass
    assert task_of(result).status == status
    assert Audit.objects.get(subject=str(result.id)).actor == "anna"


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("each", "status"),
    [(request_stop_each, "cancelled"), (cancel_each, "cancelled"), (retry_each, "ready")],
)
def test_who_ends_many_waits_for_no_task_that_somebody_holds(
    each: Callable[..., Any], status: str
) -> None:
    held, free = held_by_lost()[0], held_by_lost()[0]
    ids = [task_of(result).id for result in (held, free)]
    of_anna = partial(
        Selection,
        statuses=frozenset({TaskStatus.RUNNING}),
        person=person("anna", ""),
        is_bulk=True,
    )
    with another_connection() as other:
        with transaction.atomic():
            Task.objects.filter(id=held.id).update(priority=3)
            with orm_transaction(other):
                assert list(each(of_anna(connection=other, ids=ids))) == [ids[1]]
            assert (task_of(held).status, task_of(free).status) == ("running", status)
            assert Lease.objects.get(task_id=held.id).stop_requested_at is None
        with orm_transaction(other):
            assert list(each(of_anna(connection=other, ids=ids[:1]))) == [ids[0]]
    assert task_of(held).status == status


def test_the_end_by_hand_is_counted() -> None:
    result, _ = held_by_lost()
    request_stop(result.id)
    rollup = Rollup.objects.get()
    assert (rollup.lost, rollup.stopped, rollup.tasks_cancelled) == (1, 0, 1)


def test_a_unique_key_is_kept_by_a_retry_and_freed_by_a_stop() -> None:
    result, _ = held_by_lost(noop.using(unique_key="k"))
    retry(result.id)
    assert task_of(result).holds_unique_key
    worker_row("w2")
    claim(worker="w2")
    lose("w2")
    request_stop(result.id)
    assert not task_of(result).holds_unique_key
