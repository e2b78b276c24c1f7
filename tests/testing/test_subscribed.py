"""Handlers of events in tests of a project: `subscribed` has `run_due` run their tasks."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connection, transaction
from django.test import TestCase
from django.test.utils import CaptureQueriesContext

from taskqueue import events
from taskqueue.declarations import discovery, handlers
from taskqueue.exceptions import InvalidSubscription
from taskqueue.models import Event, Subscription
from taskqueue.testing import (
    TaskQueueTestMixin,
    arun_due,
    assert_enqueued,
    eager,
    run_due,
    run_next,
    subscribed,
)
from tests.sample.event_tasks import heard, keep_event
from tests.sample.tasks import add, fail, noop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_handlers", {})
    events.on("task.failed", "task.enqueued", name="tests.*")(keep_event)


def kinds_heard(result: Any) -> list[str]:
    return sorted(event["kind"] for event in heard(result.id))


def test_run_due_runs_the_task_of_a_handler_after_the_event() -> None:
    with subscribed(keep_event):
        result = fail.enqueue("no use")
        runs = run_due()
    assert [run.name for run in runs].count(keep_event.name) == 2
    assert kinds_heard(result) == ["task.enqueued", "task.failed"]
    [event] = [event for event in heard(result.id) if event["kind"] == "task.failed"]
    assert event["details"]["error"] == "builtins.ValueError"


def test_run_next_runs_the_task_of_a_handler_as_the_next_one() -> None:
    with subscribed(keep_event):
        result = fail.enqueue("no use")
        names = [run.name for run in iter(run_next, None)]
    assert sorted(names) == sorted([fail.name, keep_event.name, keep_event.name])
    assert kinds_heard(result) == ["task.enqueued", "task.failed"]


def test_eager_mode_runs_handlers_before_the_enqueue_returns() -> None:
    with eager(), subscribed(keep_event):
        result = fail.enqueue("no use")
        assert kinds_heard(result) == ["task.enqueued", "task.failed"]
        assert kinds_heard(noop.enqueue()) == ["task.enqueued"]


def test_an_error_that_eager_mode_raises_leaves_the_handler_to_run_due() -> None:
    with eager(errors="raise"), subscribed(keep_event):
        with pytest.raises(ValueError, match="no use"):
            fail.enqueue("no use")
        assert {run.name for run in run_due()} == {keep_event.name}
    assert_enqueued(keep_event, times=2, status="succeeded")


def test_without_arguments_every_declared_handler_is_subscribed() -> None:
    with subscribed():
        result = noop.enqueue()
        run_due()
    assert kinds_heard(result) == ["task.enqueued"]


def test_without_it_handlers_receive_nothing() -> None:
    result = fail.enqueue("no use")
    assert [run.name for run in run_due()] == [fail.name]
    assert heard(result.id) == []
    assert not Event.objects.exists()


def test_after_the_block_handlers_receive_nothing() -> None:
    with subscribed(keep_event.name):
        noop.enqueue()
        run_due()
    later = fail.enqueue("no use")
    run_due()
    assert heard(later.id) == []
    assert not Subscription.objects.exists()


def test_handlers_of_bulk_enqueues_receive_an_event_for_each_task() -> None:
    with subscribed(keep_event):
        results = add.enqueue_many([((n,), {}) for n in range(12)])
        run_due()
    assert [kinds_heard(result) for result in results] == [["task.enqueued"]] * 12


def test_a_subscription_from_before_outlasts_the_block() -> None:
    with subscribed(keep_event):
        with subscribed():
            noop.enqueue()
        result = noop.enqueue()
        run_due()
    assert kinds_heard(result) == ["task.enqueued"]


def test_a_task_that_is_not_a_handler_is_refused() -> None:
    with pytest.raises(InvalidSubscription, match="noop is not a handler: put @on"):
        subscribed(noop)


def test_a_broken_transaction_keeps_its_own_error() -> None:
    with (
        pytest.raises(DatabaseError, match="no_such_table"),
        transaction.atomic(),
        subscribed(keep_event),
        transaction.atomic(savepoint=False),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT * FROM no_such_table")
    assert not Subscription.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_mode_that_outlasts_its_transaction_ends_without_a_statement() -> None:
    mode = subscribed(keep_event)
    with transaction.atomic():
        mode.start()
        transaction.set_rollback(True)
    with CaptureQueriesContext(connection) as queries:
        mode.stop()
    assert len(queries) == 0


def test_it_imports_the_tasks_modules_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_is_complete", False)
    subscribed()
    assert discovery._is_complete


def test_it_works_in_async_code() -> None:
    async def body() -> None:
        async with subscribed(keep_event):
            await noop.aenqueue()
            await arun_due()

    async_to_sync(body)()
    assert_enqueued(keep_event, status="succeeded")


class HandlerTests(TaskQueueTestMixin, TestCase):
    eager_tasks = True

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(subscribed(keep_event))

    def test_a_failure_is_heard(self) -> None:
        result = fail.enqueue("no use")
        assert "task.failed" in kinds_heard(result)
