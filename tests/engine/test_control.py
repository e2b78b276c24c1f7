"""Cancel, stop and retry by hand: guarded, audited, and refused where they cannot be."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from taskqueue import TaskDoesNotExist, TransitionRefused
from taskqueue.control import cancel, request_stop, retry, run_now
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED, PENDING, TaskStatus
from taskqueue.engine.connections import transaction as own_transaction
from taskqueue.engine.control import tasks
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.multi_worker_task import lock_tasks
from taskqueue.models import Audit, Lease, Task
from tests.engine.steps import (
    Undo,
    another_connection,
    claim,
    claim_one,
    end,
    lease_of,
    past,
    run_at_once,
    task_of,
)
from tests.engine.test_apart import take
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def task_that_is(status: TaskStatus) -> Any:
    """A task that came to this status the ordinary way."""
    definition = noop.using(max_attempts=2 if status == TaskStatus.RETRYING else 1)
    result = definition.enqueue()
    if status == TaskStatus.SCHEDULED:
        end(claim_one(), OutcomeKind.SNOOZED, delay=60)
    elif status == TaskStatus.RETRYING:
        end(claim_one(), OutcomeKind.FAILED, delay=60)
    elif status == TaskStatus.RUNNING:
        claim_one()
    elif status == TaskStatus.SUCCEEDED:
        end(claim_one(), OutcomeKind.SUCCEEDED, return_value="1")
    elif status == TaskStatus.FAILED:
        end(claim_one(), OutcomeKind.FAILED, error_class="E", error_message="why")
    elif status == TaskStatus.CANCELLED:
        end(claim_one(), OutcomeKind.CANCELLED)
    elif status == TaskStatus.BLOCKED:
        Task.objects.filter(id=result.id).update(status=status)
    assert task_of(result).status == status
    return result


def audited() -> list[tuple[str, str, str, str, str]]:
    return list(
        Audit.objects.order_by("id").values_list("verb", "subject", "actor", "reason", "before")
    )


@pytest.mark.parametrize("status", sorted(PENDING))
def test_a_waiting_task_is_cancelled_at_once_and_audited(status: TaskStatus) -> None:
    result = task_that_is(status)
    assert cancel(result.id, by="anna", reason="not needed") == "cancelled"
    task = task_of(result)
    assert (task.status, task.error_message, task.error_class) == ("cancelled", "not needed", "")
    assert task.finished_at is not None
    assert audited() == [("cancel", str(result.id), "anna", "not needed", status)]
    assert claim() == []


@pytest.mark.parametrize("verb", [cancel, request_stop])
def test_a_running_task_is_asked_to_stop_and_audited(verb: Any) -> None:
    result = noop.enqueue()
    claimed = claim_one()
    assert verb(result.id, by="anna", reason="enough") == "running"
    lease = lease_of(claimed)
    assert (task_of(result).status, lease.status) == ("running", "running")
    assert (lease.stop_requested_by, lease.stop_reason) == ("anna", "enough")
    assert lease.stop_requested_at >= lease.claimed_at
    assert lease.stop_seen_at is None
    assert audited() == [("stop", str(result.id), "anna", "enough", "running")]


def test_the_first_stop_request_keeps_its_author() -> None:
    result = noop.enqueue()
    claimed = claim_one()
    cancel(result.id, by="anna", reason="enough")
    first = lease_of(claimed).stop_requested_at
    assert cancel(result.id, by="ben", reason="too") == "running"
    assert (lease_of(claimed).stop_requested_by, lease_of(claimed).stop_requested_at) == (
        "anna",
        first,
    )
    cancel(result.id, by="anna", reason="really")
    assert [line[2] for line in audited()] == ["anna", "ben"]
    assert Audit.objects.get(actor="ben").detail == "asked before by 'anna'"


def test_a_worker_that_takes_a_shared_task_while_it_is_stopped_is_asked_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = noop.using(workers=3).enqueue()
    close = tasks.multi_worker.close
    take("a")

    def close_what_another_has_just_taken(*args: Any, **options: Any) -> Any:
        take("b")
        return close(*args, **options)

    monkeypatch.setattr(tasks.multi_worker, "close", close_what_another_has_just_taken)
    assert request_stop(result.id, by="anna") == "running"
    asked = Lease.objects.filter(stop_requested_by="anna").values_list("worker_id", flat=True)
    assert sorted(asked) == ["a", "b"]


@pytest.mark.parametrize("status", sorted({*TaskStatus} - {TaskStatus.RUNNING}))
def test_a_task_that_does_not_run_cannot_be_stopped(status: TaskStatus) -> None:
    result = task_that_is(status)
    before = Task.objects.values().get(id=result.id)
    with pytest.raises(TransitionRefused, match=rf"is {status}\. Only running tasks") as refusal:
        request_stop(result.id)
    assert "cancel tasks that wait" in str(refusal.value)
    assert Task.objects.values().get(id=result.id) == before
    assert audited() == []


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_a_finished_task_cannot_be_cancelled(status: TaskStatus) -> None:
    result = task_that_is(status)
    before = Task.objects.values().get(id=result.id)
    with pytest.raises(
        TransitionRefused, match=rf"{status}\. Only tasks that have not finished can be cancelled"
    ):
        cancel(result.id)
    assert Task.objects.values().get(id=result.id) == before
    assert audited() == []


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_a_finished_task_is_retried_from_the_start_and_audited(status: TaskStatus) -> None:
    result = task_that_is(status)
    Task.objects.filter(id=result.id).update(
        failures=5, crashes=6, deadline_at=past(), expires_at=past()
    )
    retry(result.id, by="anna", reason="again")
    task = task_of(result)
    assert (task.status, task.failures, task.crashes) == ("ready", 0, 0)
    assert (task.finished_at, task.prune_after, task.started_at) == (None, None, None)
    assert (task.return_value, task.error_class, task.error_message) == (None, "", "")
    assert task.run_after == task.ready_at > result.enqueued_at
    assert audited() == [("retry", str(result.id), "anna", "again", status)]
    assert claim_one().attempt == 2
    assert Lease.objects.filter(task_id=result.id).count() == 2


@pytest.mark.parametrize("status", sorted({*TaskStatus} - FINISHED))
def test_an_unfinished_task_cannot_be_retried(status: TaskStatus) -> None:
    result = task_that_is(status)
    with pytest.raises(TransitionRefused, match=rf"is {status}\. Only finished tasks"):
        retry(result.id)
    assert task_of(result).status == status
    assert audited() == []


@pytest.mark.parametrize("verb", [cancel, request_stop, retry])
def test_a_task_that_is_not_there_is_said_to_be_missing(verb: Any) -> None:
    with pytest.raises(TaskDoesNotExist, match="There is no task"):
        verb(uuid4())


def test_a_task_retried_by_hand_may_fail_as_often_as_a_new_one() -> None:
    result = noop.using(max_attempts=2).enqueue()
    statuses = []
    for number in range(4):
        if number == 2:
            result.retry()
        Task.objects.update(status="ready", finished_at=None)
        statuses.append(end(claim_one(), OutcomeKind.FAILED, error_class="E"))
    assert statuses == ["retrying", "failed"] * 2
    result.refresh()
    assert [error.attempt for error in result.errors] == [1, 2, 3, 4]


def test_text_that_cannot_be_stored_or_is_too_long_is_made_fit() -> None:
    waiting, running = noop.using(queue_name="other").enqueue(), noop.enqueue()
    claimed = claim_one()
    for result in (waiting, running):
        cancel(result.id, by="n" * 500, reason="\x00\ud800" + "r" * 5000)
    assert len(lease_of(claimed).stop_reason) == 1000
    assert {len(reason) for _, _, _, reason, _ in audited()} == {1000}
    assert {len(actor) for _, _, actor, _, _ in audited()} == {150}


class Person:
    """As a user object: its text is its name."""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __str__(self) -> str:
        if self.name is None:
            raise LookupError("no such user")
        return self.name


@pytest.mark.parametrize(
    ("by", "actor"), [(None, ""), (Person("anna"), "anna"), (7, "7"), (Person(None), "Person")]
)
def test_the_actor_may_be_any_object(by: Any, actor: str) -> None:
    noop.enqueue().cancel(None, by=by)  # type: ignore[arg-type]
    assert [line[2:4] for line in audited()] == [(actor, "")]


@pytest.mark.parametrize("verb", [cancel, request_stop, retry, run_now])
@pytest.mark.parametrize("task", ["nope", 5, None, "\x00"])
def test_a_text_that_is_no_id_is_refused_by_every_verb(verb: Any, task: Any) -> None:
    with pytest.raises(TaskDoesNotExist, match="is not the id of a task"):
        verb(task)


def test_a_task_is_given_by_its_id_its_text_or_its_handle() -> None:
    result = noop.enqueue()
    for handle in (result, str(result.id), result.id):
        assert cancel(handle) == "cancelled"
        retry(handle)


def test_a_result_offers_the_same_verbs() -> None:
    result = noop.enqueue()
    result.cancel("not needed", by="anna")
    assert (result.status, result.is_finished) == ("cancelled", True)
    result.retry("after all", by="ben")
    assert (result.status, result.is_finished) == ("ready", False)
    claim_one()
    result.request_stop("enough", by="cleo")
    assert result.status == "running"
    assert [line[0] for line in audited()] == ["cancel", "retry", "stop"]


@pytest.mark.django_db(transaction=True)
def test_act_and_audit_commit_together_or_neither() -> None:
    from contextlib import suppress

    result = noop.enqueue()
    with suppress(Undo), transaction.atomic():
        result.cancel()
        raise Undo
    assert task_of(result).status == "ready"
    assert audited() == []


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_cancel_lets_go_of_a_task_that_was_claimed_before_it_waits_for_the_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The session that records it holds the lease, and waits for the task."""
    result = noop.enqueue()
    ask = tasks.request_stop_each
    tries: list[str] = []

    def ask_before_it_is_claimed(*args: Any, **options: Any) -> Any:
        if tries:
            with own_transaction(own):
                lock_tasks(own, [str(result.id)])
        asked = ask(*args, **options)
        tries.append(task_of(result).status)
        return asked

    def lock_what_is_claimed_just_now(*args: Any, **options: Any) -> Any:
        chosen = Task.objects.filter(id=result.id).select_for_update()
        if not claimed:
            with own_transaction(own):
                claimed.extend(claim(connection=own))
            assert len(chosen) == 1
            return []
        return lock(*args, **options)

    claimed: list[Any] = []
    lock = Selection.locked
    monkeypatch.setattr(tasks, "request_stop_each", ask_before_it_is_claimed)
    monkeypatch.setattr(Selection, "locked", lock_what_is_claimed_just_now)
    with another_connection() as own, transaction.atomic():
        assert cancel(result.id) == "running"
    assert tries == ["ready", "running"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_cancel_that_races_with_a_claim_ends_or_asks_and_never_does_nothing() -> None:
    results = noop.enqueue_many([((), {})] * 100)
    answers: dict[Any, str] = {}

    def cancel_all() -> None:
        for result in results:
            answers[result.id] = cancel(result.id)

    def work() -> None:
        for _ in range(60):
            with transaction.atomic():
                claim(2)

    run_at_once([cancel_all, work])
    for result in results:
        task = task_of(result)
        assert answers[result.id] == task.status
        if task.status == "running":
            assert Lease.objects.get(task_id=task.id).stop_requested_at is not None
        else:
            assert task.status == "cancelled"
            assert not Lease.objects.filter(task_id=task.id).exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_one_of_many_simultaneous_retries_is_carried_out() -> None:
    result = task_that_is(TaskStatus.FAILED)
    refused: list[str] = []

    def again() -> None:
        try:
            retry(result.id)
        except TransitionRefused as refusal:
            refused.append(str(refusal))

    run_at_once([again] * 6)
    assert len(refused) == 5
    assert [line[0] for line in audited()] == ["retry"]
