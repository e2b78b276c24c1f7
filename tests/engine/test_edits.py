"""Edits of a task that waits: its arguments, deadline, expiry and metadata."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone

from taskqueue import (
    ArgumentsDoNotBind,
    Concurrency,
    InvalidArguments,
    InvalidTask,
    TransitionRefused,
    chain,
    control,
)
from taskqueue.control import TaskFilter, dry_run, update, update_many
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED, WAITING, TaskStatus
from taskqueue.engine.connections import transaction as own_transaction
from taskqueue.models import Audit, Task
from taskqueue.models.task import Route
from taskqueue.tracing.metadata import PARENT
from tests.engine.limit_steps import take
from tests.engine.steps import (
    another_connection,
    claim,
    claim_one,
    end,
    past,
    promote,
    run_at_once,
    task_of,
)
from tests.engine.test_control import task_that_is
from tests.sample.tasks import add, echo, log_in, noop, unique

pytestmark = pytest.mark.django_db
CAN_BE_EDITED = sorted({*WAITING, TaskStatus.READY})


@pytest.mark.parametrize("status", CAN_BE_EDITED)
def test_an_edit_of_a_waiting_task_reaches_its_next_attempt(status: TaskStatus) -> None:
    result = task_that_is(status)
    Task.objects.update(name=add.name, args=[1], kwargs={"b": 2})
    assert update(result.id, args=[5], by="anna", reason="a typo")
    result.refresh()
    assert (result.status, result.args, result.kwargs) == (status, [5], {"b": 2})
    line = Audit.objects.get()
    assert (line.verb, line.actor, line.reason, line.before) == ("update", "anna", "a typo", status)
    assert line.detail == "arguments: a: 1 to 5"
    control.run_now(result.id) if status != TaskStatus.READY else None
    assert json.loads(claim_one().args) == [5]


@pytest.mark.parametrize("status", [TaskStatus.RUNNING, *sorted(FINISHED)])
@pytest.mark.parametrize(
    "edit",
    [
        {"args": [5]},
        {"changes": {"deadline": 60}},
        {"changes": {"expires_after": 60}},
        {"changes": {"metadata": {"a": 1}}},
    ],
)
def test_a_running_or_finished_task_cannot_be_edited(status: TaskStatus, edit: Any) -> None:
    result = task_that_is(status)
    before = Task.objects.values().get()
    with pytest.raises(TransitionRefused, match=rf"is {status}\."):
        update(result.id, **edit)
    assert Task.objects.values().get() == before
    assert not Audit.objects.exists()


def test_options_of_what_runs_change_only_without_an_edit() -> None:
    result = task_that_is(TaskStatus.RUNNING)
    with pytest.raises(
        TransitionRefused, match="Its arguments and metadata can only be changed while it waits"
    ):
        result.update(priority=5, metadata={}, kwargs={})
    assert task_of(result).priority == 0
    assert result.update(priority=5, stop_grace=9, retry_on="same", timeout_from="progress")
    assert task_of(result).options == {
        "stop_grace": 9.0, "retry_on": "same", "timeout_from": "progress",
    }  # fmt: skip
    assert result.update(stop_grace=None, retry_on="any")
    assert task_of(result).options == {"timeout_from": "progress"}


def test_arguments_are_checked_as_at_an_enqueue() -> None:
    result = add.enqueue(1, b=2)
    with pytest.raises(ArgumentsDoNotBind, match="cannot be called with these arguments"):
        result.update(args=[1, 2, 3])
    with pytest.raises(InvalidArguments, match="must be int, not str"):
        result.update(kwargs={"b": "two"})
    with pytest.raises(InvalidArguments, match="args must be a list or a tuple, not str"):
        result.update(args="12")  # type: ignore[arg-type]
    Task.objects.update(name=echo.name)
    with pytest.raises(InvalidArguments, match="must be at most"):
        result.update(args=["x" * 100_000])
    assert task_of(result).args == [1]
    assert not Audit.objects.exists()


def test_an_edit_that_changes_nothing_is_not_audited() -> None:
    result = add.using(metadata={"a": 1}).enqueue(1, b=2)
    assert not result.update(args=[1], kwargs={"b": 2}, metadata={"a": 1}, deadline=None)
    assert not Audit.objects.exists()
    with pytest.raises(InvalidTask, match="Nothing to change"):
        result.update()


def test_secrets_are_told_to_differ_and_not_what_they_are() -> None:
    result = log_in.enqueue("bob", password="very secret")
    assert result.update(kwargs={"password": "another one"})
    detail = Audit.objects.get().detail
    assert detail == "arguments: password: [redacted] to [redacted]"
    Task.objects.update(name="shop.tasks.gone")
    result.update(args=["robert"])
    assert Audit.objects.latest("id").detail == "arguments changed"
    assert task_of(result).args == ["robert"]


def test_a_deadline_counts_from_the_edit_and_can_be_taken_back() -> None:
    result = noop.enqueue()
    moment = datetime(2099, 1, 1, tzinfo=UTC)
    assert result.update(deadline=moment, expires_after=timedelta(hours=1))
    task = task_of(result)
    assert task.deadline_at == moment
    assert task.expires_at is not None
    assert abs(task.expires_at - timezone.now() - timedelta(hours=1)) < timedelta(minutes=5)
    assert f"deadline: none to {moment.isoformat()}" in Audit.objects.get().detail
    assert result.update(deadline=None, expires_after=None)
    assert (task_of(result).deadline_at, task_of(result).expires_at) == (None, None)
    assert result.update(deadline=past())
    promote()
    assert claim() == []


def test_a_task_that_has_started_cannot_be_given_an_expiry() -> None:
    result = task_that_is(TaskStatus.RETRYING)
    Task.objects.update(started_at=timezone.now())
    with pytest.raises(InvalidTask, match="has been started before"):
        result.update(expires_after=60)
    assert result.update(deadline=60)


def test_metadata_is_replaced_and_its_trace_stays() -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    result = noop.using(metadata={"a": 1, "b": {"c": 2}}).enqueue()
    Task.objects.update(metadata={"a": 1, "b": {"c": 2}, PARENT: trace})
    assert result.update(metadata={"a": 1, "b": {"c": 3}})
    assert task_of(result).metadata == {"a": 1, "b": {"c": 3}, PARENT: trace}
    assert Audit.objects.get().detail == "metadata.b.c: 2 to 3"
    with pytest.raises(InvalidTask, match="metadata must be a JSON object"):
        result.update(metadata=[])


def test_a_unique_key_that_is_made_of_the_arguments_is_not_left_behind() -> None:
    made = unique.enqueue("a")
    with pytest.raises(InvalidTask, match="holds a unique key that is made of its arguments"):
        made.update(args=["b"])
    own = noop.using(unique_key="mine").enqueue()
    Task.objects.filter(id=own.id).update(name=echo.name)
    assert own.update(args=[1])
    digest = add.using(unique_key=("a",)).enqueue(1)
    with pytest.raises(InvalidTask, match="unique key"):
        digest.update(kwargs={"b": 7})
    free = unique.using(unique_for="started").enqueue("c")
    Task.objects.filter(id=free.id).update(holds_unique_key=False)
    assert free.update(args=["d"])


@pytest.mark.django_db(transaction=True)
def test_limits_that_only_the_enqueue_knew_keep_the_arguments() -> None:
    result = add.using(concurrency=Concurrency(1, key="a")).enqueue(1)
    with pytest.raises(InvalidTask, match="may be made of its arguments"):
        result.update(args=[2])
    tagged = add.using(requires={"gpu"}).enqueue(1)
    assert tagged.update(args=[2])
    assert task_of(tagged).limits == {"tags": ["gpu"]}


@pytest.mark.django_db(transaction=True)
def test_a_task_moves_to_the_partition_of_its_new_key(limited: Any) -> None:
    limited.enqueue_many([((1,), {}), ((1,), {})])
    [running] = take()
    waiting = Task.objects.get(status="ready")
    assert take() == []
    assert update(waiting.id, args=[2])
    assert Task.objects.get(id=waiting.id).route == Route.PARTITION
    [second] = take()
    assert json.loads(second.args) == [2]
    end(running, OutcomeKind.SUCCEEDED)


@pytest.fixture
def limited() -> Any:
    from taskqueue import task
    from taskqueue.declarations.definition import registry

    @task(name="tests.limited_edit", concurrency=Concurrency(1, key="a"))
    def body(a: int) -> int:
        return a

    yield body
    del registry._definitions[body.name]


def test_a_step_of_a_workflow_keeps_its_arguments() -> None:
    run = chain(add.s(1), add.s()).enqueue()
    tasks = Task.objects.filter(step__isnull=False).order_by("id")
    for task in tasks:
        with pytest.raises(TransitionRefused, match="may refer to results there"):
            update(task.id, args=[5])
    ready, blocked = tasks.get(status="ready"), tasks.get(status="blocked")
    assert update(ready.id, {"deadline": 60, "metadata": {"a": 1}})
    with pytest.raises(InvalidTask, match="when it is released"):
        update(blocked.id, {"deadline": 60})
    assert update(blocked.id, {"priority": 3})
    assert not run.is_finished


def test_a_shared_task_that_one_worker_has_run_keeps_its_arguments() -> None:
    result = noop.using(workers=2).enqueue()
    Task.objects.update(successes=1, status="retrying")
    with pytest.raises(TransitionRefused, match="has succeeded on 1 of its workers"):
        result.update(args=[])


def test_a_batch_takes_one_list_of_events(batched: Any) -> None:
    from django.db import connection

    from taskqueue.engine.batches.firing import fire_group

    batched.collect(1)
    batched.collect(2)
    [fired] = fire_group(connection, batched.name, "")
    with pytest.raises(ArgumentsDoNotBind):
        update(fired.task_id, args=[])
    assert update(fired.task_id, args=[[1, 2, 3]])


@pytest.fixture
def batched() -> Any:
    from taskqueue import Batch, task
    from taskqueue.declarations.definition import registry

    @task(name="tests.batched_edit", batch=Batch(max_size=10, max_delay=60))
    def body(events: list[Any]) -> int:
        return len(events)

    yield body
    del registry._definitions[body.name]


@pytest.mark.django_db(transaction=True)
def test_an_edit_and_a_claim_never_meet_in_one_task() -> None:
    for number in range(10):
        edit_and_claim(number)
        Task.objects.all().delete()


def edit_and_claim(number: int) -> None:
    """Do both at once: the attempt gets the old arguments or the new ones, and the edit knows."""
    result = add.enqueue(1)
    seen: list[Any] = []

    def edit() -> None:
        try:
            update(result.id, args=[2])
        except TransitionRefused:
            seen.append("refused")

    def take_it() -> None:
        with another_connection() as own, own_transaction(own):
            seen.extend(json.loads(each.args) for each in claim(connection=own))

    run_at_once([edit, take_it])
    take_it()  # A task that is locked is left to the next claim.
    assert seen in ([[2]], [[1], "refused"], ["refused", [1]]), (number, seen)
    assert task_of(result).args == ([2] if [2] in seen else [1])


@pytest.mark.django_db(transaction=True)
def test_a_task_that_is_being_edited_is_left_to_the_next_claim() -> None:
    result = add.enqueue(1)
    with transaction.atomic():
        update(result.id, args=[2])
        claimed: list[Any] = []
        if transaction.get_connection().vendor == "postgresql":
            run_at_once([lambda: claimed.extend(claim())])
        assert claimed == []
    assert json.loads(claim_one().args) == [2]


def test_many_are_edited_but_for_what_runs() -> None:
    waiting, running = noop.enqueue(), noop.using(queue_name="b").enqueue()
    claim_one(queue="b")
    outcome = update_many(TaskFilter(everything=True), {"deadline": 60, "priority": 3})
    assert (outcome.matched, outcome.done) == (2, 1)
    assert (task_of(waiting).priority, task_of(running).priority) == (3, 0)
    assert dry_run(TaskFilter(everything=True), "update", changes={"deadline": 60}).matched == 2


def test_async_code_edits_too() -> None:
    result = add.enqueue(1)

    async def act() -> None:
        assert await result.aupdate("a typo", args=[2], deadline=60, by="anna")
        assert result.args == [2]

    async_to_sync(act)()
    assert Audit.objects.get().reason == "a typo"
