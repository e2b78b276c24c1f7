"""A worker's name is its identity: one living worker each, known lost when it falls silent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from taskqueue.engine import workers
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.registration import (
    Holder,
    Registered,
    Registration,
    register,
    unregister,
)
from taskqueue.engine.workers import Asked
from taskqueue.models import Queue, Worker
from taskqueue.models.worker import WorkerStatus
from tests.engine.steps import another_connection, claim_one, past, run_at_once
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def registration(name: str = "w1", **changes: Any) -> Registration:
    values: dict[str, Any] = {
        "name": name,
        "host": "here",
        "pid": 7,
        "queues": {"mail": 3},
        "concurrency": 4,
        "pool": "process",
        "versions": {"python": "3"},
        "lease_seconds": 30.0,
    }
    return Registration(**{**values, **changes})


def registered(name: str = "w1", **changes: Any) -> tuple[Registration, Registered]:
    own = registration(name, **changes)
    answer = register(own)
    assert isinstance(answer, Registered)
    return own, answer


def touch(own: Registration, answer: Registered, **changes: Any) -> Asked | None:
    values = {
        "status": "running", "running_leases": 0, "trouble": "", "memory_bytes": None,
        "cpu_percent": None, **changes
    }  # fmt: skip
    return workers.touch(connection, worker_id=answer.id, incarnation=own.incarnation, **values)


def row(name: str = "w1") -> Worker:
    return Worker.objects.get(name=name)


def fall_silent(name: str = "w1") -> None:
    Worker.objects.filter(name=name).update(seen_at=past())


def test_a_worker_registers_its_own_description() -> None:
    before = dialect_for(connection).now(connection)
    own, answer = registered()
    worker = row()
    assert (worker.id, worker.started_at, worker.seen_at) == (
        answer.id,
        answer.started_at,
        answer.started_at,
    )
    assert answer.started_at >= before
    assert worker.incarnation == own.incarnation
    assert (worker.host, worker.pid, worker.queues) == ("here", 7, {"mail": 3})
    assert (worker.concurrency, worker.pool, worker.versions) == (4, "process", {"python": "3"})
    assert (worker.status, worker.lease_seconds, worker.stopped_at) == ("running", 30.0, None)


def test_a_name_in_use_is_refused_and_its_holder_returned() -> None:
    own, _ = registered()
    holder = register(registration(host="there", pid=8))
    assert isinstance(holder, Holder)
    assert (holder.host, holder.pid, holder.is_stale) == ("here", 7, False)
    assert row().incarnation == own.incarnation


@pytest.mark.parametrize("end", ["stopped", "lost", "silent"])
def test_the_name_of_a_worker_that_is_gone_is_free(end: str) -> None:
    own, first = registered()
    if end == "stopped":
        unregister(worker_id=first.id, incarnation=own.incarnation)
        assert row().status == "stopped"
    else:
        fall_silent()
    if end == "lost":
        assert workers.mark_lost(connection) == 1
    _, second = registered(pid=8)
    assert second.id == first.id
    assert (row().pid, row().status, row().stopped_at) == (8, "running", None)


def test_a_holder_known_to_be_dead_is_replaced() -> None:
    registered()
    holder = register(registration(pid=8))
    assert isinstance(holder, Holder)
    assert isinstance(register(registration(pid=8), replacing=holder.seen_at), Registered)
    assert row().pid == 8


def test_a_holder_that_gave_a_sign_of_life_meanwhile_is_not_replaced() -> None:
    own, answer = registered()
    holder = register(registration(pid=8))
    assert isinstance(holder, Holder)
    touch(own, answer)
    assert isinstance(register(registration(pid=8), replacing=holder.seen_at), Holder)
    assert row().pid == 7


def test_a_sign_of_life_moves_the_row() -> None:
    own, answer = registered()
    fall_silent()
    assert touch(own, answer, running_leases=3, trouble="no child starts")
    worker = row()
    assert worker.seen_at > past(timedelta(minutes=1))
    assert (worker.running_leases, worker.trouble) == (3, "no child starts")
    assert touch(own, answer, status=WorkerStatus.STOPPING.value)
    assert (row().status, row().trouble) == ("stopping", "")


def test_a_worker_that_was_replaced_learns_it_and_changes_nothing() -> None:
    old, first = registered()
    fall_silent()
    registered(pid=8)
    seen_at = row().seen_at
    assert not touch(old, first, running_leases=5)
    unregister(worker_id=first.id, incarnation=old.incarnation)
    assert (row().seen_at, row().running_leases, row().status) == (seen_at, 0, "running")


def test_a_silent_worker_is_marked_lost_once() -> None:
    registered("silent")
    registered("alive")
    registered("patient", lease_seconds=7200.0)
    fall_silent("silent")
    fall_silent("patient")
    assert workers.mark_lost(connection) == 1
    assert workers.mark_lost(connection) == 0
    assert {worker.name: worker.status for worker in Worker.objects.all()} == {
        "silent": "lost",
        "alive": "running",
        "patient": "running",
    }
    assert row("silent").stopped_at is not None


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_roll_call_waits_for_no_row_of_a_worker() -> None:
    for name in ("held", "silent"):
        registered(name)
        fall_silent(name)
    with another_connection() as other:
        with transaction.atomic():
            Worker.objects.filter(name="held").update(trouble="")
            assert workers.mark_lost(other) == 1
        assert workers.mark_lost(other) == 1
        Worker.objects.update(seen_at=past(timedelta(days=2)))
        with transaction.atomic():
            Worker.objects.filter(name="held").update(trouble="")
            assert workers.forget_gone(other) == 1
        assert workers.forget_gone(other) == 1


def test_a_worker_that_wakes_up_after_it_was_marked_lost_is_running_again() -> None:
    own, answer = registered()
    fall_silent()
    workers.mark_lost(connection)
    assert touch(own, answer)
    assert row().status == "running"


def test_workers_gone_for_long_are_forgotten_but_not_while_they_hold_leases() -> None:
    for name in ("old", "holder", "young"):
        own, answer = registered(name)
        unregister(worker_id=answer.id, incarnation=own.incarnation)
    noop.enqueue()
    claim_one(worker="holder")
    Worker.objects.filter(name__in=("old", "holder")).update(seen_at=past(timedelta(days=2)))
    assert workers.forget_gone(connection) == 1
    assert set(Worker.objects.values_list("name", flat=True)) == {"holder", "young"}


def test_an_idle_worker_says_so() -> None:
    _, answer = registered()
    for is_idle in (True, False):
        workers.set_idle(connection, worker_id=answer.id, is_idle=is_idle)
        assert row().is_idle is is_idle


def test_a_queue_is_remembered_once_with_its_controls() -> None:
    workers.remember_queues(connection, ["mail", "default"])
    workers.remember_queues(connection, ["mail"])
    assert set(Queue.objects.values_list("name", flat=True)) == {"mail", "default"}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_of_many_workers_that_start_under_one_name_gets_it() -> None:
    answers: list[object] = []

    def start(pid: int) -> Any:
        return lambda: answers.append(register(registration(pid=pid)))

    run_at_once([start(pid) for pid in range(8)])
    assert [type(answer) for answer in answers].count(Registered) == 1
    assert Worker.objects.count() == 1
