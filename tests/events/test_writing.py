"""Which changes cause events, what they hold, and that they are part of the change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from taskqueue import control, schedules
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.engine.rows import Note
from taskqueue.engine.workers import mark_lost
from taskqueue.models import Event, Lease, Task, Worker
from taskqueue.workflows import chain
from tests.engine.steps import claim, claim_one, end, past, run_at_once
from tests.events.steps import kinds, listen, numbered, written
from tests.sample.tasks import add, echo, fail, log_in, noop, unique

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-7f3a91"


def test_the_enqueue_start_and_success_of_a_task_write_events() -> None:
    listen()
    task = add.using(queue_name="mail").enqueue(1)
    end(claim_one(queue="mail"), OutcomeKind.SUCCEEDED)
    assert kinds() == ["task.enqueued", "task.started", "task.succeeded"]
    for event in written():
        assert str(event.task_id) == str(task.id)
        assert (event.name, event.queue_name, event.seq) == (add.name, "mail", None)
    enqueued, started, succeeded = written()
    assert (enqueued.worker, enqueued.attempt, enqueued.details) == ("", None, {"status": "ready"})
    assert (started.worker, started.attempt) == ("w1", 1)
    assert (succeeded.worker, succeeded.attempt) == ("w1", 1)
    assert succeeded.details["status"] == "succeeded"
    assert succeeded.details["seconds"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    "write",
    [
        lambda: noop.enqueue(),
        lambda: noop.using(run_after=60).enqueue(),
        lambda: unique.using(unique_key="k").enqueue("k"),
        lambda: noop.using(worker_names=["w1"]).enqueue(),
        lambda: noop.enqueue_many([((), {})])[0],
        lambda: noop.using(run_after=60).enqueue_many([((), {})])[0],
        lambda: chain(noop.s()).enqueue(),
    ],
)
def test_every_way_to_enqueue_writes_an_event(write: Callable[[], Any]) -> None:
    listen("task.enqueued")
    write()
    assert [str(event.task_id) for event in written()] == [str(Task.objects.get().id)]


def test_many_tasks_tell_of_their_enqueue_each_once() -> None:
    listen("task.enqueued")
    tasks = noop.enqueue_many([((), {})] * 1200)
    assert sorted(str(event.task_id) for event in numbered()) == sorted(
        str(task.id) for task in tasks
    )


def test_a_failure_that_is_retried_tells_the_class_of_its_error_alone() -> None:
    listen("task.retrying", "task.failed")
    fail.using(max_attempts=2).enqueue()
    error: dict[str, Any] = {
        "error_class": "builtins.OSError", "error_message": CANARY, "traceback": CANARY,
    }  # fmt: skip
    end(claim_one(), OutcomeKind.FAILED, delay=0, **error)
    Task.objects.update(status="ready")
    end(claim_one(), OutcomeKind.FAILED, **error)
    assert kinds() == ["task.retrying", "task.failed"]
    assert [event.details["error"] for event in written()] == ["builtins.OSError"] * 2
    assert [event.attempt for event in written()] == [1, 2]


def test_manual_actions_write_events() -> None:
    listen()
    task = noop.enqueue()
    control.cancel(task.id)
    control.retry(task.id)
    claim_one()
    control.request_stop(task.id)
    assert kinds() == [
        "task.enqueued", "task.cancelled", "task.retrying", "task.started", "task.stopping",
    ]  # fmt: skip


def test_a_lost_attempt_and_its_retry_write_events() -> None:
    listen("task.lost", "task.retrying", "task.failed")
    noop.enqueue()
    end(claim_one(), OutcomeKind.LOST)
    assert sorted(kinds()) == ["task.lost", "task.retrying"]


def test_progress_tells_its_percent() -> None:
    from taskqueue.engine.record import write_notes

    listen("task.progressed")
    noop.enqueue()
    claimed = claim_one()
    for percent in (25.0, 25.0, 50.0):
        write_notes(connection, [Note(claimed.lease_id, 1.0, percent, CANARY)])
    end(claimed, OutcomeKind.SUCCEEDED)
    assert [event.details for event in written()] == [{"percent": 25.0}, {"percent": 50.0}]


def test_the_start_failed_step_and_end_of_a_workflow_write_events() -> None:
    listen("workflow.*", "step.*")
    run = chain(fail.s(), noop.si()).enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="builtins.ValueError")
    from taskqueue.engine.workflows import serving

    while serving.serve(connection):
        pass
    assert kinds() == ["workflow.started", "step.failed", "workflow.failed"]
    assert {str(event.workflow_id) for event in written()} == {str(run.id)}


def test_tasks_of_a_workflow_name_it_and_their_step() -> None:
    listen("task.enqueued")
    run = chain(noop.s(), noop.si()).enqueue()
    assert {str(event.workflow_id) for event in written()} == {str(run.id)}
    assert {event.details["step"] for event in written()} == {"noop", "noop-2"}


def test_queues_tell_when_they_are_paused_and_resumed() -> None:
    listen("queue.*")
    control.pause("mail")
    control.resume("mail")
    assert [(event.kind, event.queue_name) for event in written()] == [
        ("queue.paused", "mail"),
        ("queue.resumed", "mail"),
    ]


def test_a_schedule_tells_when_it_is_paused() -> None:
    from taskqueue import Every

    listen("schedule.*")
    schedules.create("nightly", noop, Every(hours=1))
    schedules.pause("nightly")
    schedules.resume("nightly")
    assert [(event.kind, event.name) for event in written()] == [("schedule.paused", "nightly")]


def test_workers_tell_when_they_start_are_quiet_stop_and_are_lost() -> None:
    from django.utils import timezone

    listen("worker.*")
    now = timezone.now()
    worker = Worker.objects.create(name="w1", host="h", pid=1, started_at=now, seen_at=now)
    Worker.objects.update(status="quiet")
    Worker.objects.update(status="stopped", stopped_at=now)
    Worker.objects.update(status="running", seen_at=now - timedelta(hours=1))
    assert mark_lost(connection) == 1
    assert kinds() == ["worker.started", "worker.quiet", "worker.stopped", "worker.lost"]
    assert {event.worker for event in written()} == {worker.name}


def test_an_event_is_undone_with_its_change() -> None:
    listen()
    with transaction.atomic():
        noop.enqueue()
        assert kinds() == ["task.enqueued"]
        transaction.set_rollback(True)
    assert written() == []


def test_only_events_that_match_a_subscription_are_written() -> None:
    listen("task.enqueued", name="tests.sample.tasks.a?d", queue="mail*")
    listen("task.succeeded", task=noop.enqueue().id)
    add.enqueue(1)
    add.using(queue_name="mail-eu").enqueue(1)
    noop.using(queue_name="mail-eu").enqueue()
    for claimed in claim(queue="default"):
        end(claimed, OutcomeKind.SUCCEEDED)
    assert [(event.kind, event.name) for event in written()] == [
        ("task.enqueued", add.name),
        ("task.succeeded", noop.name),
    ]


@pytest.mark.parametrize("name", ["a_b", "a%b", "a\\b", "a.b"])
def test_signs_of_patterns_of_the_database_mean_themselves(name: str) -> None:
    listen("task.retrying", name=f"{name}*")
    task = Task.objects.filter(id=noop.enqueue().id)
    for own in (f"{name}c", "aXb", "axbc"):
        task.update(name=own, status="cancelled", finished_at=past())
        task.update(status="ready", finished_at=None)
    assert [event.name for event in written()] == [f"{name}c"]


def test_no_argument_result_message_or_key_is_in_any_event() -> None:
    listen()
    log_in.using(unique_key=CANARY, metadata={"note": CANARY}).enqueue(CANARY, CANARY)
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value=f'"{CANARY}"')
    echo.enqueue(CANARY)
    error = {"error_class": "builtins.ValueError", "error_message": CANARY, "traceback": CANARY}
    end(claim_one(), OutcomeKind.FAILED, **error)
    task = echo.enqueue(CANARY)
    control.cancel(task.id, by=CANARY, reason=CANARY)
    control.pause("default", by=CANARY, reason=CANARY)
    chain(echo.s(CANARY), echo.s(CANARY)).enqueue()
    assert len(written()) > 8
    for row in Event.objects.values():
        assert CANARY not in str(row)


def test_a_success_that_the_fence_refuses_tells_nothing() -> None:
    noop.enqueue()
    claimed = claim_one()
    Lease.objects.update(status="lost", finished_at="2020-01-01T00:00:00Z")
    listen()
    end(claimed, OutcomeKind.SUCCEEDED)
    assert written() == []


@pytest.mark.postgresql_only
def test_a_bulk_enqueue_leaves_its_transaction_open_to_later_subscriptions() -> None:
    with transaction.atomic():
        noop.enqueue_many([((), {})] * 3)
        run_at_once([lambda: listen("task.enqueued")])
        add.enqueue(1)
    assert [event.name for event in written()] == [add.name]


@pytest.mark.postgresql_only
def test_a_bulk_enqueue_leaves_what_its_session_knows_of_subscriptions() -> None:
    def known() -> str | None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('taskqueue.events', true)")
            return cursor.fetchone()[0]

    listen("task.failed")
    for before in ("task.started", "-"):
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('taskqueue.events', %s, true)", (before,))
            noop.enqueue_many([((), {})] * 3)
            assert known() == before
    noop.enqueue_many([((), {})] * 3)
    assert not known()
