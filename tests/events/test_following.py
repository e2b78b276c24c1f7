"""Following the feed in Python, with real workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection

from taskqueue import events
from taskqueue.declarations import handlers
from taskqueue.engine.events.declaring import sync_handlers
from taskqueue.engine.events.hub import HUB
from taskqueue.engine.events.reading import FeedEvent
from taskqueue.events import EventsGone
from taskqueue.models import Audience, Event, Subscription, Worker
from tests.conftest import StartWorker
from tests.events.steps import number_all
from tests.sample.event_tasks import heard, keep_event
from tests.sample.tasks import add, fail, noop
from tests.worker_process import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 90.0


async def first(number: int, stream: AsyncIterator[FeedEvent]) -> list[FeedEvent]:
    """The first events of a stream."""
    found = []
    async for event in stream:
        found.append(event)
        if len(found) == number:
            break
    return found


def run(body: Any) -> Any:
    """Run a coroutine function to its end."""

    async def bounded() -> Any:
        return await asyncio.wait_for(body(), PATIENCE)

    return async_to_sync(bounded)()


async def subscribed(number: int = 1) -> None:
    """Wait until so many have subscribed."""
    while await Subscription.objects.acount() < number:
        await asyncio.sleep(0.01)


def test_reading_subscribes_from_then_on() -> None:
    noop.enqueue()
    assert events.since(0) == []
    noop.enqueue()
    number_all()
    (event,) = events.since(0, "task.enqueued", name="*.noop")
    assert (event.seq, event.kind, event.name) == (1, "task.enqueued", noop.name)
    assert events.since(event.seq) == []
    assert events.last() == 1


def test_reading_again_writes_nothing_while_the_subscription_lasts() -> None:
    from django.test.utils import CaptureQueriesContext

    events.since(0)
    before = Subscription.objects.get().until
    with CaptureQueriesContext(connection) as queries:
        events.since(0)
    assert Subscription.objects.get().until == before
    assert not [query for query in queries if not query["sql"].startswith("SELECT")]


def test_a_reader_that_comes_too_late_learns_where_to_continue() -> None:
    Audience.objects.create(last_seq=9, pruned_seq=7)
    with pytest.raises(EventsGone) as caught:
        events.since(3)
    assert caught.value.oldest == 8


def test_a_stream_yields_what_was_and_what_comes() -> None:
    events.since(0)
    noop.enqueue()
    number_all()

    async def body() -> list[FeedEvent]:
        reading = asyncio.create_task(first(2, events.stream("task.enqueued", after=0)))
        await subscribed(2)
        await add.aenqueue(1)
        await sync_to_async(number_all)()
        return await reading

    assert [event.name for event in run(body)] == [noop.name, add.name]


def test_many_streams_read_each_event_once_from_the_database() -> None:
    async def body() -> list[list[FeedEvent]]:
        reading = [asyncio.create_task(first(3, events.stream("task.enqueued"))) for _ in range(20)]
        await subscribed()
        while len(HUB._followers) < 20 or HUB._floor is None:
            await asyncio.sleep(0.01)
        for _ in range(3):
            await noop.aenqueue()
            await sync_to_async(number_all)()
        return await asyncio.gather(*reading)

    for found in run(body):
        assert [event.seq for event in found] == [1, 2, 3]


def test_a_task_tells_its_events_until_its_end(start_worker: StartWorker) -> None:
    start_worker()
    task = add.using(run_after=4).enqueue(1)  # Workers hear of subscriptions within two seconds.

    async def body() -> list[str]:
        return [event.kind async for event in task.events()]

    assert run(body) == ["task.started", "task.succeeded"]
    assert task.status == "succeeded"


def test_a_task_that_has_ended_tells_nothing_more(start_worker: StartWorker) -> None:
    start_worker()
    task = add.enqueue(1).wait(timeout=PATIENCE)

    async def body() -> list[str]:
        return [event.kind async for event in task.events()]

    assert run(body) == []


def test_workers_number_events_and_run_handlers(
    start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "_handlers", {})
    start_worker()
    wait_until(lambda: Worker.objects.get().schedules is not None, what="its declarations")
    events.on("task.failed", name="*.fail")(keep_event)
    sync_handlers()
    task = fail.using(run_after=4).enqueue()
    wait_until(lambda: heard(task.id), what="the handler")
    (event,) = heard(task.id)
    assert event["kind"] == "task.failed"
    assert event["details"]["error"] == "builtins.ValueError"


def test_events_of_a_worker_that_was_killed_are_numbered_by_another(
    start_worker: StartWorker,
) -> None:
    events.since(0)
    noop.enqueue_many([((), {})] * 50)
    worker = start_worker()
    wait_until(lambda: Event.objects.filter(seq__isnull=False).exists(), what="a number")
    worker.kill()
    noop.enqueue_many([((), {})] * 50)
    start_worker()
    wait_until(
        lambda: Event.objects.filter(kind="task.succeeded", seq__isnull=False).count() == 100,
        what="the ends",
    )
    number_all()
    seqs = list(Event.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, len(seqs) + 1))
