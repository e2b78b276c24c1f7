"""Why a task stands where it stands: each reason where it holds, and nothing else."""

from __future__ import annotations

import string
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from taskqueue import control
from taskqueue.conf import get_settings
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import TaskStatus
from taskqueue.models import Lease, Task, Worker
from taskqueue.monitoring.why import Reason, why
from taskqueue.monitoring.why.codes import FULLER, SENTENCES
from taskqueue.results import TaskResult
from tests.engine.steps import claim_one, end, end_overdue, past, run_out, task_of
from tests.engine.test_apart import take
from tests.engine.test_control import task_that_is
from tests.monitoring.rows import HOUR, ago, make_task, make_worker
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db


def reasons(result: TaskResult[Any]) -> list[Reason]:
    """The reasons of a task as it stands."""
    found = why(task_of(result))
    assert all(reason.sentence for reason in found)
    return found


def codes(result: TaskResult[Any]) -> list[str]:
    """Their codes."""
    return [reason.code for reason in reasons(result)]


def only(result: TaskResult[Any]) -> Reason:
    """The reason, where there is one."""
    (reason,) = reasons(result)
    return reason


@pytest.mark.parametrize("status", sorted(TaskStatus))
def test_a_task_of_any_status_has_a_reason(status: TaskStatus) -> None:
    assert reasons(task_that_is(status))


def test_every_code_has_a_sentence_that_asks_for_nothing_else_than_names() -> None:
    for sentence in (*SENTENCES.values(), *chain(*FULLER.values())):
        names = [name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None]
        assert all(name.isidentifier() for name in names)


# Waiting


def test_a_ready_task_is_in_line_if_a_worker_serves_its_queue() -> None:
    result = noop.enqueue()
    assert reasons(result) == [Reason(code="unserved", subject="default")]
    make_worker("other", queues={"mail": 1})
    make_worker("silent", seen_at=ago(HOUR))
    make_worker("gone", status="stopped")
    assert codes(result) == ["unserved"]
    make_worker(queues={"default": 2, "mail": 1})
    assert reasons(result) == [Reason(code="in_line", subject="default")]


def test_workers_that_are_quiet_take_nothing() -> None:
    result = noop.enqueue()
    make_worker("w1", status="quiet")
    make_worker("w2", status="stopping")
    assert codes(result) == ["not_taking"]
    make_worker("w3")
    assert codes(result) == ["in_line"]


def test_workers_that_cannot_work_say_why() -> None:
    result = noop.enqueue()
    make_worker("w1", trouble="no module named shop")
    assert only(result).sentence == "The worker w1 cannot work: no module named shop"
    make_worker("w2")
    assert codes(result) == ["in_line"]


def test_a_task_that_is_not_due_says_until_when() -> None:
    make_worker()
    result = noop.using(run_after=600).enqueue()
    assert reasons(result) == [Reason(code="not_due", moment=task_of(result).run_after)]


def test_a_retry_says_what_went_wrong_before() -> None:
    make_worker()
    result = noop.using(max_attempts=3).enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="builtins.KeyError", delay=60)
    reason = only(result)
    assert (reason.code, reason.subject, reason.details) == (
        "retry_due", "builtins.KeyError", {"attempt": 1},
    )  # fmt: skip
    assert reason.sentence.endswith(" UTC: attempt 1 ended with builtins.KeyError.")


def test_an_overdue_task_waits_for_a_worker_to_notice() -> None:
    result = noop.using(run_after=600).enqueue()
    Task.objects.update(run_after=past())
    assert codes(result) == ["due", "unserved"]


def test_an_expired_or_overdue_task_is_not_started() -> None:
    make_worker()
    expired, overdue = noop.using(expires_after=60).enqueue(), noop.using(deadline=60).enqueue()
    Task.objects.filter(id=expired.id).update(expires_at=past())
    Task.objects.filter(id=overdue.id).update(deadline_at=past())
    assert (codes(expired), codes(overdue)) == (["expired"], ["deadline_passed"])


def test_a_paused_queue_holds_it_until_the_pause_is_over() -> None:
    make_worker()
    result = noop.enqueue()
    control.pause("default")
    assert reasons(result) == [Reason(code="queue_paused", subject="default")]
    control.pause("default", until=timedelta(minutes=5), by="ann", reason="a deploy")
    reason = only(result)
    assert reason.moment is not None
    assert reason.sentence.endswith(" UTC, by ann: a deploy")
    control.resume("default")
    assert codes(result) == ["in_line"]


def test_a_task_for_certain_workers_waits_for_these() -> None:
    make_worker("w1")
    result = noop.using(worker_names=["w2", "w3"]).enqueue()
    assert reasons(result) == [Reason(code="workers_absent", subject="w2, w3")]
    make_worker("w3")
    assert codes(result) == ["in_line"]


def test_a_parked_task_says_since_when_and_when_it_fails() -> None:
    make_worker()
    result, since = noop.enqueue(), timezone.now()
    Task.objects.filter(id=result.id).update(parked_at=since)
    reason = only(result)
    assert (reason.code, reason.subject, reason.moment) == ("unknown", noop.name, since)
    assert reason.details == {"fails_at": since + get_settings().PARK_LIMIT}


def test_several_reasons_are_all_listed() -> None:
    control.pause("default")
    assert codes(noop.using(run_after=60).enqueue()) == ["not_due", "queue_paused", "unserved"]


# In line


def test_those_before_it_are_counted_by_priority_and_time() -> None:
    make_worker()
    make_task(queue_name="default", priority=5, run_after=timezone.now())
    make_task(queue_name="default", run_after=past())
    make_task(queue_name="mail", priority=5)
    make_task("scheduled", priority=5)
    result = noop.enqueue()
    make_task(run_after=timezone.now() + HOUR)
    make_task(priority=-1, run_after=past())
    reason = only(result)
    assert (reason.code, reason.details) == ("behind", {"ahead": 2, "higher": 1})
    assert reason.sentence == (
        "Tasks ahead of it in the queue default: 2; with higher priority: 1."
    )


def test_they_are_counted_up_to_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskqueue.monitoring.why.pending.CAP", 2)
    make_worker()
    noop.enqueue_many([((), {})] * 3)
    reason = only(noop.enqueue())
    assert reason.sentence == "At least 2 tasks are ahead of it in the queue default."


def test_tasks_ahead_are_counted_for_the_worker_that_is_named() -> None:
    make_worker("w1")
    noop.using(priority=1).enqueue()
    noop.enqueue()
    noop.using(worker_names=["w1"]).enqueue()
    noop.using(worker_names=["w2"]).enqueue()
    assert only(noop.using(worker_names=["w1"]).enqueue()).details == {"ahead": 2, "higher": 1}


def test_a_reason_says_that_all_slots_are_busy() -> None:
    noop.enqueue()
    claim_one(worker="w1")
    make_worker("w1", concurrency=1)
    result = noop.enqueue()
    assert codes(result) == ["slots_busy", "in_line"]
    make_worker("w2", concurrency=1)
    assert codes(result) == ["in_line"]


# Running


def test_a_running_task_says_its_worker_its_start_and_its_lease() -> None:
    make_worker("w1")
    result = noop.enqueue()
    claim_one()
    lease = Lease.objects.get()
    assert reasons(result) == [
        Reason(
            code="claimed",
            subject="w1",
            moment=lease.claimed_at,
            details={"attempt": 1, "expires_at": lease.expires_at},
        )
    ]
    Lease.objects.update(started_at=timezone.now())
    assert codes(result) == ["running"]


def test_a_stop_a_silent_worker_and_the_end_of_the_lease_are_reasons() -> None:
    make_worker("w1", started_at=ago(HOUR))
    result = noop.enqueue()
    claimed = claim_one()
    control.request_stop(result.id, by="ann", reason="too long")
    Worker.objects.update(seen_at=ago(HOUR))
    Lease.objects.update(wedged_at=timezone.now())
    run_out(claimed)
    assert codes(result) == ["claimed", "stop_requested", "wedged", "worker_lost", "lease_over"]
    stop = reasons(result)[1]
    assert stop.sentence.startswith("ann asked it to stop at ")
    assert stop.sentence.endswith(" UTC: too long")


def test_a_worker_whose_row_is_gone_is_lost() -> None:
    result = noop.enqueue()
    claim_one()
    assert reasons(result)[1].sentence == "The worker w1 no longer exists."


def test_a_running_task_without_a_lease_is_changing() -> None:
    result = noop.enqueue()
    Task.objects.update(status="running")
    assert codes(result) == ["changing"]


# Several workers


def test_a_task_of_several_workers_says_how_many_it_waits_for() -> None:
    make_worker("a")
    result = add.using(workers=3).enqueue(1)
    assert codes(result) == ["more_workers", "too_few_workers"]
    [claimed] = take("a")
    more = reasons(result)[1]
    assert (more.code, more.details) == (
        "more_workers", {"wanted": 3, "done": 0, "running": 1, "open": 2},
    )  # fmt: skip
    end(claimed, OutcomeKind.SUCCEEDED, return_value="1")
    assert codes(result) == ["more_workers", "too_few_workers"]
    assert reasons(result)[1].details == {"open": 2, "able": 0}
    make_worker("b")
    make_worker("c")
    assert codes(result) == ["more_workers"]


def test_a_worker_that_tried_lets_others_first() -> None:
    make_worker("a")
    result = add.using(workers=2, max_attempts=5).enqueue(1)
    [claimed] = take("a")
    end(claimed, OutcomeKind.FAILED, error_class="E", delay=60)
    found = {reason.code: reason for reason in reasons(result)}
    assert found["worker_waits"].subject == "a"
    assert found["worker_waits"].moment == Lease.objects.get().retry_at


def test_a_broadcast_waits_to_be_seen_and_then_for_those_that_are_gone() -> None:
    make_worker("a")
    make_worker("b")
    result = add.using(broadcast=True).enqueue(1)
    assert codes(result) == ["unseated", "in_line"]
    with transaction.atomic():
        [claimed] = take("a")
    end(claimed, OutcomeKind.SUCCEEDED, return_value="1")
    Worker.objects.filter(name="b").update(seen_at=ago(HOUR))
    found = {reason.code: reason for reason in reasons(result)}
    assert found["workers_absent"].subject == "b"


# Ended


def test_a_success_says_when_and_in_which_attempt() -> None:
    result = noop.enqueue()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    reason = only(result)
    assert (reason.code, reason.moment) == ("succeeded", task_of(result).finished_at)
    assert reason.details == {"attempt": 1}


def test_a_failure_says_by_what_and_that_no_attempt_is_left() -> None:
    result = noop.enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="builtins.KeyError", error_message="{x}" * 400)
    failed, left = reasons(result)
    assert failed.subject == "builtins.KeyError"
    assert failed.sentence.endswith("…")
    assert left.sentence == "1 of 1 attempts failed."


def test_a_task_whose_worker_was_lost_too_often_says_so() -> None:
    result = noop.using(max_crashes=1, max_attempts=3).enqueue()
    end(claim_one(), OutcomeKind.LOST)
    assert codes(result) == ["failed", "no_crashes_left"]


def test_a_failure_before_the_last_attempt_leaves_it_at_that() -> None:
    result = noop.using(max_attempts=3).enqueue()
    end(claim_one(), OutcomeKind.FAILED, error_class="E", retryable=False)
    assert codes(result) == ["failed"]


def test_who_cancelled_it_is_told_from_the_audit_or_from_the_attempt() -> None:
    waiting, running = noop.enqueue(), noop.using(queue_name="mail").enqueue()
    claimed = claim_one(queue="mail")
    for result in (waiting, running):
        control.cancel(result.id, by="ann", reason="enough")
    end(claimed, OutcomeKind.STOPPED)
    for result in (waiting, running):
        assert only(result).sentence.endswith(" UTC by ann: enough")


def test_an_expired_task_names_no_actor_who_cancelled_it() -> None:
    result = noop.using(expires_after=60).enqueue()
    control.cancel(result.id, by="ann")
    control.retry(result.id)
    Task.objects.update(expires_at=past())
    end_overdue()
    reason = only(result)
    assert (reason.code, reason.details["reason"]) == (
        "cancelled", "Not started before it expired.",
    )  # fmt: skip


# As it is given out


def test_a_reason_is_a_plain_object_with_its_sentence() -> None:
    result = noop.enqueue()
    assert only(result).as_dict() == {
        "code": "unserved",
        "message": "No running worker serves the queue default.",
        "subject": "default",
        "moment": None,
        "clears_at": None,
        "details": {},
    }
