"""Changes by hand to a task that has not finished: its time, and its terms."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync

from taskqueue import Fixed, InvalidTask, TaskDoesNotExist, TransitionRefused
from taskqueue.control import reschedule, run_now, update
from taskqueue.core.states import FINISHED, PENDING, WAITING, TaskStatus
from taskqueue.engine.forecast import NEXT_DUE
from taskqueue.models import Audit, Task
from taskqueue.models.task import Route
from tests.engine.steps import claim, claim_one, future, past, promote, task_of
from tests.engine.test_control import task_that_is
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def audited() -> list[tuple[str, ...]]:
    lines = Audit.objects.order_by("id")
    return list(lines.values_list("verb", "subject", "actor", "reason", "before"))


@pytest.mark.parametrize("status", sorted(WAITING))
def test_a_task_that_waits_for_its_time_can_be_run_now(status: TaskStatus) -> None:
    result = task_that_is(status)
    due = task_of(result).run_after
    run_now(result.id, by="anna", reason="cannot wait")
    task = task_of(result)
    assert (task.status, task.run_after) == ("ready", task.ready_at)
    assert task.run_after < due
    assert audited() == [("run_now", str(result.id), "anna", "cannot wait", status)]
    assert Audit.objects.get().detail == f"was due at {due.isoformat()}"
    claim_one()


@pytest.mark.parametrize("status", sorted({*TaskStatus} - WAITING))
def test_a_task_that_does_not_wait_for_its_time_cannot_be_run_now(status: TaskStatus) -> None:
    result = task_that_is(status)
    before = Task.objects.values().get(id=result.id)
    with pytest.raises(TransitionRefused, match=rf"is {status}\. Only"):
        run_now(result.id)
    assert Task.objects.values().get(id=result.id) == before
    assert audited() == []


@pytest.mark.parametrize(
    ("status", "later"),
    [("scheduled", "scheduled"), ("retrying", "retrying"), ("ready", "scheduled")],
)
def test_a_waiting_task_can_be_rescheduled(status: TaskStatus, later: str) -> None:
    result = task_that_is(TaskStatus(status))
    when = future()
    reschedule(result.id, when, by="anna", reason="at night")
    task = task_of(result)
    assert (task.status, task.run_after, task.ready_at) == (later, when, None)
    assert audited() == [("reschedule", str(result.id), "anna", "at night", status)]
    assert claim() == []
    reschedule(result.id, timedelta(0))
    assert task_of(result).status == "ready"
    claim_one()


def test_a_duration_counts_from_now() -> None:
    result = noop.using(run_after=3600).enqueue()
    reschedule(result.id, 60)
    assert task_of(result).run_after < future(timedelta(minutes=2))
    assert promote().until(NEXT_DUE) == pytest.approx(60, abs=30)


def test_a_time_that_is_over_makes_it_ready() -> None:
    result = noop.using(run_after=3600).enqueue()
    reschedule(result.id, past())
    task = task_of(result)
    assert (task.status, task.run_after) == ("ready", task.ready_at)


@pytest.mark.parametrize("status", sorted({*FINISHED, TaskStatus.RUNNING, TaskStatus.BLOCKED}))
def test_a_task_that_does_not_wait_cannot_be_rescheduled(status: TaskStatus) -> None:
    result = task_that_is(status)
    before = Task.objects.values().get(id=result.id)
    with pytest.raises(TransitionRefused, match=rf"is {status}\. Only"):
        reschedule(result.id, future())
    assert Task.objects.values().get(id=result.id) == before
    assert audited() == []


@pytest.mark.parametrize("when", [None, "soon", past().replace(tzinfo=None), 1e300, True])
def test_a_time_that_cannot_be_is_refused(when: Any) -> None:
    result = noop.using(run_after=3600).enqueue()
    with pytest.raises(InvalidTask, match="run_after"):
        reschedule(result.id, when)
    assert audited() == []


@pytest.mark.parametrize("status", sorted({*PENDING, TaskStatus.RUNNING}))
def test_the_terms_of_a_live_task_can_be_changed(status: TaskStatus) -> None:
    result = task_that_is(status)
    changes = {"priority": 7, "queue_name": "mail", "max_attempts": 9, "lease_duration": 60}
    assert update(result.id, changes, by="anna", reason="it matters")
    task = task_of(result)
    assert (task.status, task.priority, task.queue_name) == (status, 7, "mail")
    assert (task.max_attempts, task.lease_duration) == (9, timedelta(seconds=60))
    assert audited() == [("update", str(result.id), "anna", "it matters", status)]
    detail = Audit.objects.get().detail
    assert "queue_name: default to mail, priority: 0 to 7" in detail
    assert "lease_duration: none to 60 s" in detail


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_the_terms_of_a_finished_task_matter_no_more(status: TaskStatus) -> None:
    result = task_that_is(status)
    with pytest.raises(
        TransitionRefused, match=rf"is {status}\. Only tasks that have not finished"
    ):
        update(result.id, {"priority": 7})
    assert audited() == []


def test_an_update_that_changes_nothing_is_not_audited() -> None:
    result = noop.using(priority=7).enqueue()
    assert not update(result.id, {"priority": 7, "max_attempts": None})
    assert audited() == []


def test_a_task_that_now_names_workers_is_taken_by_no_other() -> None:
    result = noop.enqueue()
    update(result.id, {"worker_names": ["w2"]})
    task = task_of(result)
    assert (task.route, task.worker_names, task.pinned_to) == (Route.APART, ["w2"], "w2")
    assert claim(worker="w1") == []
    update(result.id, {"worker_names": ["w2", "w3"]})
    task = task_of(result)
    assert (task.route, task.worker_names, task.pinned_to) == (Route.APART, ["w2", "w3"], "")
    update(result.id, {"worker_names": None})
    task = task_of(result)
    assert (task.route, task.worker_names, task.pinned_to) == (Route.ORDINARY, None, "")
    claim_one(worker="w1")


def test_how_long_a_body_may_take_and_when_it_is_retried_travel_with_the_task() -> None:
    result = noop.using(timeout=5).enqueue()
    update(result.id, {"timeout": 60, "backoff": Fixed(3)})
    assert Audit.objects.get().detail.startswith("timeout: 60 s, backoff: Fixed(")
    options = task_of(result).options
    assert options["timeout"] == 60.0
    claimed = claim_one()
    assert '"timeout":60.0' in claimed.options.replace(" ", "")
    update(result.id, {"timeout": None})
    assert "timeout" not in task_of(result).options


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "Nothing to change"),
        ({"prority": 5}, "Did you mean 'priority'"),
        ({"args": [1]}, "'args' is not an option that can change"),
        ({"priority": 1000}, "priority must be"),
        ({"queue_name": "no such name"}, "queue_name must be"),
        ({"worker_names": []}, "worker_names must hold"),
        ({"backoff": lambda error, result: 1}, "a callable belongs to the definition"),
        ({"ping_interval": 20, "lease_duration": 30}, "at most a third"),
    ],
)
def test_a_change_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    result = noop.enqueue()
    before = Task.objects.values().get(id=result.id)
    with pytest.raises(InvalidTask, match=message):
        update(result.id, changes)
    assert Task.objects.values().get(id=result.id) == before
    assert audited() == []


def test_a_change_must_fit_what_stays() -> None:
    result = noop.using(lease_duration=30).enqueue()
    with pytest.raises(InvalidTask, match="at most a third of lease_duration"):
        update(result.id, {"ping_interval": 20})
    several = noop.using(workers=3).enqueue()
    with pytest.raises(InvalidTask, match="workers=3 can never be reached"):
        update(several.id, {"worker_names": ["a", "b"]})
    broadcast = noop.using(broadcast=True).enqueue()
    with pytest.raises(InvalidTask, match="is a broadcast"):
        update(broadcast.id, {"worker_names": ["a"]})


def test_a_task_that_is_not_there_is_said_to_be_missing() -> None:
    for act in (
        lambda: run_now(uuid4()),
        lambda: reschedule(uuid4(), 5),
        lambda: update(uuid4(), {"priority": 1}),
    ):
        with pytest.raises(TaskDoesNotExist, match="There is no task"):
            act()


def test_a_result_offers_the_same_verbs() -> None:
    result = noop.using(run_after=3600).enqueue()
    result.reschedule(7200, "later", by="anna")
    assert result.update("it matters", by="anna", priority=3)
    result.run_now("after all", by="ben")
    assert result.status == "ready"
    assert [line[:1] + line[2:4] for line in audited()] == [
        ("reschedule", "anna", "later"),
        ("update", "anna", "it matters"),
        ("run_now", "ben", "after all"),
    ]


def test_async_code_uses_the_same_verbs() -> None:
    waiting, running = noop.using(run_after=3600).enqueue(), noop.using(queue_name="b").enqueue()
    claim_one(queue="b")

    async def act() -> None:
        await waiting.areschedule(7200, "later", by="anna")
        assert await waiting.aupdate("it matters", by="anna", priority=3)
        await waiting.arun_now("after all", by="anna")
        assert waiting.status == "ready"
        await waiting.acancel("or not", by="anna")
        assert waiting.status == "cancelled"
        again = await waiting.aretry("with others", args=[], by="anna")
        assert (again.id != waiting.id, again.status) == (True, "ready")
        assert await waiting.aretry("again", by="anna") is waiting
        await running.arequest_stop("enough", by="anna")

    async_to_sync(act)()
    assert [line[0] for line in audited()] == [
        "reschedule", "update", "run_now", "cancel", "retry", "retry", "stop",
    ]  # fmt: skip
    assert {line[2] for line in audited()} == {"anna"}


def test_an_option_that_is_fixed_at_the_enqueue_is_said_to_be() -> None:
    result = noop.enqueue()
    with pytest.raises(InvalidTask, match="workers cannot be changed after the enqueue"):
        result.update(workers=2)
    with pytest.raises(InvalidTask, match=r"'prority' is not .* Did you mean 'priority'"):
        result.update(prority=2)
