"""Bulk enqueues write their events by one statement, not by triggers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

from taskqueue.engine.events import numbering
from taskqueue.engine.postgresql.arrivals import MOST_TOGETHER
from taskqueue.engine.postgresql.events import LEAST
from taskqueue.engine.postgresql.workflows import FEWEST_COPIED
from taskqueue.models import Event, EventBatch, Task
from taskqueue.results.enqueueing import enqueue_many as enqueue_with_ids
from taskqueue.worker.duties import BEHIND_PAUSE
from taskqueue.workflows import group
from tests.engine.steps import Undo, run_at_once
from tests.events.steps import listen, numbered
from tests.sample.tasks import add, echo, noop
from tests.worker.test_duties import duties, serve

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql_only]
MANY = 2 * FEWEST_COPIED


def enqueue_many(number: int = MANY, **options: Any) -> Any:
    return add.using(**options).enqueue_many([((each,), {}) for each in range(number)])


def comparable(rows: list[Event]) -> list[dict[str, Any]]:
    """Events without what differs from one to the next."""
    return [
        {
            "kind": row.kind, "name": row.name, "queue": row.queue_name, "worker": row.worker,
            "attempt": row.attempt, "details": row.details,
            "in_workflow": row.workflow_id is not None,
        }
        for row in rows
    ]  # fmt: skip


def in_order() -> list[str]:
    """The tasks in the order in which they were enqueued."""
    return [str(id) for id in Task.objects.order_by("id").values_list("id", flat=True)]


def subscribe_to_everything() -> None:
    listen()


def subscribe_to_some() -> None:
    listen("task.enqueued", name="tests.sample.*", queue="mai?")
    listen("task.enqueued", name="tests.sample.tasks.a?d")
    listen("task.enqueued", "task.failed", queue="*")


@pytest.mark.parametrize("subscribe", [subscribe_to_everything, subscribe_to_some])
@pytest.mark.parametrize(
    "enqueue",
    [
        enqueue_many,
        lambda: enqueue_many(queue_name="mail"),
        lambda: enqueue_many(run_after=60),
        lambda: add.enqueue_many([((1,), {"b": 2})] * MANY),
        lambda: group(add.s(each) for each in range(MANY)).enqueue(),
    ],
    ids=["ready", "other queue", "scheduled", "with keywords", "group"],
)
def test_the_events_are_those_that_triggers_write(
    subscribe: Callable[[], None], enqueue: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe()
    with monkeypatch.context() as patch:
        patch.setattr("taskqueue.engine.postgresql.arrivals.LEAST", 10**9)
        enqueue()
    assert not EventBatch.objects.exists()
    by_triggers = comparable(numbered())
    assert sum(each["kind"] == "task.enqueued" for each in by_triggers) == MANY
    Event.objects.all().delete()
    Task.objects.all().delete()
    enqueue()
    assert sum(batch.number for batch in EventBatch.objects.all()) == MANY
    assert comparable(numbered()) == by_triggers
    of_tasks = [str(row.task_id) for row in numbered() if row.kind == "task.enqueued"]
    assert of_tasks == in_order()


def test_no_row_holds_more_tasks_than_fit_a_page() -> None:
    listen("task.enqueued")
    enqueue_many(1200)
    assert {batch.number > MOST_TOGETHER for batch in EventBatch.objects.all()} == {False}
    assert EventBatch.objects.count() < 10
    assert [str(row.task_id) for row in numbered()] == in_order()


def test_few_events_are_written_by_triggers() -> None:
    listen("task.enqueued")
    enqueue_many(LEAST - 1)
    assert (Event.objects.count(), EventBatch.objects.count()) == (LEAST - 1, 0)


def test_only_events_that_match_a_subscription_are_written() -> None:
    listen("task.enqueued", name="*.echo")
    listen("task.enqueued", queue="mail")
    listen("task.enqueued", task=uuid4(), name="*.noop")
    listen("task.started")
    enqueue_many()
    enqueue_many(queue_name="mail")
    noop.enqueue_many([((), {})] * MANY)
    echo.enqueue_many([((each,), {}) for each in range(MANY)])
    found = {(row.name, row.queue_name) for row in numbered()}
    assert found == {(add.name, "mail"), (echo.name, "default")}
    assert len(numbered()) == 2 * MANY


def test_of_a_task_whose_id_was_known_before_its_own_event_is_written() -> None:
    wanted = uuid4()
    listen("task.enqueued", task=wanted)
    ids = [uuid4().hex for _ in range(MANY - 1)]
    enqueue_with_ids(add, [((1,), {})] * MANY, task_ids=[*ids, wanted.hex])
    assert [row.task_id for row in numbered()] == [wanted]


def test_nothing_is_written_while_nobody_has_subscribed() -> None:
    listen("task.failed")
    enqueue_many()
    group(add.s(each) for each in range(MANY)).enqueue()
    assert not EventBatch.objects.exists()
    assert numbered() == []


def test_they_are_undone_with_their_tasks() -> None:
    listen("task.enqueued")

    def enqueue_in_vain() -> None:
        with transaction.atomic():
            enqueue_many()
            raise Undo

    with pytest.raises(Undo):
        enqueue_in_vain()
    assert numbered() == []
    with transaction.atomic():
        with pytest.raises(Undo):
            enqueue_in_vain()  # Up to its savepoint alone.
        enqueue_many(LEAST)
        add.enqueue(1)  # By its trigger: the session is asked as before.
    assert len(numbered()) == LEAST + 1


def test_they_are_not_visible_before_their_tasks() -> None:
    listen("task.enqueued")
    seen: list[int] = []
    with transaction.atomic():
        enqueue_many()
        run_at_once([lambda: seen.append(len(numbered()))])
    assert (seen, len(numbered())) == ([0], MANY)


def test_a_batch_that_did_not_fit_into_a_turn_is_numbered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numbering, "PLAIN_BATCH", MANY)
    listen("task.enqueued")
    add.enqueue(1)
    enqueue_many()
    own = duties()
    assert serve(own) <= BEHIND_PAUSE
    assert Event.objects.filter(seq__isnull=False).count() == 1
    assert serve(own) <= BEHIND_PAUSE
    assert Event.objects.filter(seq__isnull=False).count() == MANY + 1
    assert serve(own) > BEHIND_PAUSE


def test_an_enqueue_that_fails_leaves_what_the_session_knows() -> None:
    listen("task.enqueued")
    with transaction.atomic():
        with pytest.raises(Exception, match="must be int"):
            add.enqueue_many([((each,), {}) for each in [*range(MANY), object()]])
        add.enqueue(1)
        assert connection.in_atomic_block
    assert len(numbered()) == 1
