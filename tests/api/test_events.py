"""The feed of events over REST: pages, waiting, what is hidden, and streams under ASGI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.test.utils import override_settings
from django.utils import timezone

from taskqueue.core.states import TaskStatus
from taskqueue.engine.events import subscribing
from taskqueue.exceptions import EventsGone
from taskqueue.models import Audience, Subscription, Task, TaskLog
from taskqueue.monitoring import streams
from tests.api.conftest import ApiClient
from tests.engine.steps import claim_one
from tests.events.conftest import _ended_hub  # noqa: F401
from tests.events.steps import listen, number_all
from tests.events.streaming import close, logged_in, parts, run
from tests.sample.tasks import add, noop

pytestmark = pytest.mark.django_db(transaction=True)
STREAM = "/api/v1/events/stream/"


def test_a_page_has_the_events_after_a_number(root: ApiClient) -> None:
    listen()
    add.enqueue(1)
    noop.enqueue()
    number_all()
    told = root.look("events/?after=0&name=*.add").json()
    (event,) = told["results"]
    assert (event["seq"], event["kind"], event["name"]) == (1, "task.enqueued", add.name)
    assert (told["after"], told["has_more"]) == (2, False)
    assert root.look(f"events/?after={told['after']}").json()["results"] == []
    told = root.look("events/?after=0&limit=1").json()
    assert (told["after"], told["has_more"]) == (1, True)


def test_a_reader_who_does_not_wait_changes_nothing(root: ApiClient) -> None:
    assert root.look("events/").json() == {"results": [], "after": 0, "has_more": False}
    assert not Subscription.objects.exists()


def test_a_reader_who_waits_is_subscribed(root: ApiClient) -> None:
    listen("task.enqueued")
    noop.enqueue()
    number_all()
    told = root.look("events/?after=0&wait=20&kind=task.enqueued,task.failed").json()
    assert [event["kind"] for event in told["results"]] == ["task.enqueued"]
    assert {"task.enqueued", "task.failed"} == set(Audience.objects.get().kinds.split())


def test_a_reader_with_one_filter_too_many_is_told_to_come_back(
    root: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribing, "MOST_READERS", 1)
    listen()
    answer = root.look("events/?wait=1&name=a")
    assert (answer.status_code, answer.json()["code"]) == (503, "too_many_readers")
    assert "try again in a minute" in answer.json()["detail"]
    assert answer["Retry-After"] == "60"
    assert root.look("events/?name=a").status_code == 200


def test_who_comes_too_late_is_told_where_to_read_on(root: ApiClient) -> None:
    Audience.objects.create(last_seq=9, pruned_seq=7)
    answer = root.look("events/?after=3")
    assert answer.status_code == 410
    assert (answer.json()["code"], answer.json()["oldest"]) == ("events_gone", 8)


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        (
            "kind=task.faild",
            "/kind: No event is of the kind 'task.faild'. Did you mean",
        ),
        ("name=[a]", "may have * and ? only"),
        ("task=7", "Must be a valid UUID"),
        ("colour=red", "Unknown field"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_refused(root: ApiClient, query: str, detail: str) -> None:
    answer = root.look(f"events/?{query}")
    assert answer.status_code == 400
    assert detail in answer.json()["detail"]


def test_only_kinds_are_told_that_their_reader_may_see(member: Callable[..., ApiClient]) -> None:
    listen()
    noop.enqueue()
    claim_one()
    from taskqueue import control

    control.pause("mail")
    number_all()
    tasks, queues = member("view_task"), member("view_task", "view_queue", "view_lease")
    told = tasks.look("events/?after=0").json()["results"]
    assert [(event["kind"], event["worker"]) for event in told] == [
        ("task.enqueued", ""),
        ("task.started", ""),
    ]
    told = queues.look("events/?after=0").json()["results"]
    assert [(event["kind"], event["worker"]) for event in told] == [
        ("task.enqueued", ""),
        ("task.started", "w1"),
        ("queue.paused", ""),
    ]
    assert tasks.look("events/?kind=queue.paused").status_code == 403


def test_a_server_without_asgi_has_no_streams(root: ApiClient) -> None:
    answer = root.look("events/stream/")
    assert answer.status_code == 501
    assert "events/?wait=20" in answer.json()["detail"]


# Under ASGI


def test_a_stream_sends_events_as_they_come() -> None:
    async def body() -> None:
        client = await logged_in()
        answer = await client.get(f"{STREAM}?kind=task.enqueued")
        assert answer.status_code == 200
        assert answer["Content-Type"] == "text/event-stream"
        assert (answer["Cache-Control"], answer["X-Accel-Buffering"]) == ("no-store", "no")
        stream = parts(answer)
        first = await anext(stream)
        assert first["id"] == "0"
        await noop.aenqueue()
        await sync_to_async(number_all)()
        event = await anext(stream)
        assert (event["id"], event["event"]) == ("1", "task.enqueued")
        assert json.loads(event["data"])["name"] == noop.name
        await stream.aclose()
        await close(answer)
        assert not streams.OPEN._taken

    run(body)


def test_a_client_that_comes_back_misses_nothing() -> None:
    listen()
    noop.enqueue_many([((), {})] * 3)
    number_all()

    async def body() -> list[str]:
        client = await logged_in()
        answer = await client.get(STREAM, headers={"Last-Event-ID": "1"})
        stream = parts(answer)
        found = [(await anext(stream))["id"] for _ in range(2)]
        await close(answer)
        return found

    assert run(body) == ["2", "3"]


def test_too_many_streams_are_refused_until_one_ends() -> None:
    async def body() -> None:
        client = await logged_in()
        first = await client.get(STREAM)
        refused = await client.get(STREAM)
        assert (refused.status_code, refused["Retry-After"]) == (503, "30")
        assert refused.json()["code"] == "too_many_streams"
        await close(first)
        again = await client.get(STREAM)
        assert again.status_code == 200
        await close(again)

    with override_settings(TASKQUEUE={"STREAMS": {"user": 1}}):
        run(body)


def test_a_stream_ends_when_its_user_logs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LOOK", 0.0)

    async def body() -> None:
        client = await logged_in()
        stream = parts(await client.get(STREAM))
        await anext(stream)
        await client.alogout()
        assert [part async for part in stream if "event" in part] == []

    run(body)


def test_a_stream_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LONGEST_STREAM", 0.0)

    async def body() -> list[dict[str, str]]:
        client = await logged_in()
        return [part async for part in parts(await client.get(STREAM))]

    (only,) = run(body)
    assert only["id"] == "0"


def test_a_stream_ends_when_its_user_may_no_longer_see_its_kinds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "LOOK", 0.0)

    async def body() -> None:
        client = await logged_in("view_task", "view_queue")
        stream = parts(await client.get(f"{STREAM}?kind=queue.*"))
        await anext(stream)
        user = await User.objects.aget()
        await user.user_permissions.aremove(await Permission.objects.aget(codename="view_queue"))
        assert [part async for part in stream if "event" in part] == []

    run(body)


@pytest.mark.parametrize(("last_seen", "oldest"), [(3, 8), (1000, 10)])
def test_a_client_with_an_unavailable_position_gets_an_error_before_the_stream(
    last_seen: int, oldest: int
) -> None:
    Audience.objects.create(last_seq=9, pruned_seq=7)

    async def body() -> None:
        client = await logged_in()
        answer = await client.get(STREAM, headers={"Last-Event-ID": str(last_seen)})
        assert (answer.status_code, answer.json()["oldest"]) == (410, oldest)
        assert not streams.OPEN._taken

    run(body)


def test_a_stream_whose_next_events_are_deleted_says_behind_which_to_go_on() -> None:
    async def pages() -> AsyncIterator[str]:
        yield "first"
        raise EventsGone("They are no longer kept.", oldest=8)

    async def body() -> list[str]:
        sent = streams._sent(
            pages(), said=lambda page: [page], silent=str, may_go_on=bool, release=bool
        )
        return [part.decode() async for part in sent]

    assert run(body) == [
        "first",
        'id: 7\nevent: gone\ndata: {"detail": "They are no longer kept.", "oldest": 8}\n\n',
    ]


def test_a_client_that_does_not_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "UNREAD", 0.05)

    async def body() -> None:
        client = await logged_in()
        answer: Any = await client.get(STREAM)

        async def read_no_more() -> None:
            async for _ in answer.streaming_content:
                await asyncio.Event().wait()  # As a server does whose buffer is full.

        reading = asyncio.create_task(read_no_more())
        await asyncio.wait([reading], timeout=60)
        assert reading.cancelled()
        await close(answer)
        assert not streams.OPEN._taken

    run(body)


def test_a_stream_with_one_filter_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribing, "MOST_READERS", 1)
    listen()

    async def body() -> None:
        client = await logged_in()
        answer = await client.get(f"{STREAM}?name=a")
        assert (answer.status_code, answer["Retry-After"]) == (503, "60")
        assert answer.json()["code"] == "too_many_readers"
        assert not streams.OPEN._taken

    run(body)


# Log lines


def line_of(task: Task, message: str) -> TaskLog:
    return TaskLog.objects.create(
        task_id=task.pk, attempt=1, logged_at=timezone.now(), level=20, message=message
    )


def test_a_stream_sends_the_log_lines_of_a_task_until_its_end() -> None:
    task = Task.objects.get(pk=noop.enqueue().id)
    other = Task.objects.get(pk=noop.enqueue().id)
    first = line_of(task, "before")
    line_of(other, "of another task")

    def write_the_rest() -> TaskLog:
        line = line_of(task, "after")
        Task.objects.filter(pk=task.pk).update(
            status=TaskStatus.CANCELLED, finished_at=timezone.now()
        )
        return line

    async def body() -> None:
        client = await logged_in("view_task", "view_tasklog")
        answer = await client.get(f"{STREAM}?task={task.pk}&logs=1")
        assert answer["Content-Type"] == "text/event-stream"
        stream = parts(answer)
        line = await anext(stream)
        assert (line["id"], line["event"]) == (str(first.pk), "line")
        assert json.loads(line["data"])["message"] == "before"
        last = await sync_to_async(write_the_rest)()
        rest = [part async for part in stream if "event" in part]
        assert [part["event"] for part in rest] == ["line", "end"]
        assert json.loads(rest[0]["data"])["message"] == "after"
        assert json.loads(rest[1]["data"]) == {"status": "cancelled"}
        again = await client.get(
            f"{STREAM}?task={task.pk}&logs=1", headers={"Last-Event-ID": str(last.pk)}
        )
        assert [part["event"] async for part in parts(again)] == ["end"]
        assert not streams.OPEN._taken

    run(body)


@pytest.mark.parametrize(
    ("permissions", "query", "status", "detail"),
    [
        (("view_task",), "task={task}", 403, "(taskqueue.view_tasklog)"),
        ((), "", 400, "Name the task"),
        ((), "task={task}&kind=task.failed", 400, "Log lines have none"),
        ((), "task=0198c5a8-0000-7000-8000-000000000000", 404, "There is no task"),
    ],
)
def test_a_stream_of_log_lines_is_refused_with_its_reason(
    permissions: tuple[str, ...], query: str, status: int, detail: str
) -> None:
    task = noop.enqueue()

    async def body() -> None:
        client = await logged_in(*permissions)
        answer = await client.get(f"{STREAM}?logs=1&{query.format(task=task.id)}")
        assert answer.status_code == status
        assert detail in answer.json()["detail"]
        assert not streams.OPEN._taken

    run(body)
