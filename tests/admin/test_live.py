"""Pages learn of their changes by streams, which need ASGI and carry no content."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.test.utils import override_settings
from django.urls import reverse

from taskqueue import control
from taskqueue.control import TaskFilter
from taskqueue.models import Subscription
from taskqueue.monitoring import streams
from tests.events.conftest import _ended_hub  # noqa: F401
from tests.events.steps import number_all
from tests.events.streaming import close, logged_in, parts, run
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db(transaction=True)
DASHBOARD = "/admin/taskqueue/dashboard/"
STREAM = f"{DASHBOARD}stream/"
READY = {"retry": "5000", "event": "ready", "data": "-"}
CHANGED = {"event": "changed", "data": "-"}


def page_of(task: Any) -> str:
    return reverse("admin:taskqueue_task_change", args=[task.id])


def stream_of(task: Any) -> str:
    return reverse("admin:taskqueue_task_stream", args=[task.id])


def test_a_page_names_its_stream_under_asgi_alone() -> None:
    task = noop.enqueue()

    async def body() -> None:
        client = await logged_in()
        for page, stream in ((DASHBOARD, STREAM), (page_of(task), stream_of(task))):
            answer = await client.get(page)
            assert f'data-refresh-stream="{stream}"' in answer.content.decode()

    run(body)
    client = Client()
    client.force_login(User.objects.get())
    assert "data-refresh-stream" not in client.get(DASHBOARD).content.decode()
    assert client.get(STREAM).status_code == 404


def test_a_stream_tells_of_a_change_and_nothing_else() -> None:
    async def body() -> None:
        client = await logged_in("view_task", "view_queue")
        answer = await client.get(STREAM)
        assert answer["Content-Type"] == "text/event-stream"
        assert "no-store" in answer["Cache-Control"]
        stream = parts(answer)
        assert await anext(stream) == READY
        await sync_to_async(control.pause)("mail", reason="a secret")
        await sync_to_async(number_all)()
        assert await anext(stream) == CHANGED
        await stream.aclose()
        await close(answer)
        assert not streams.OPEN._taken

    run(body)


def test_the_stream_of_a_task_tells_of_no_other_one() -> None:
    async def body() -> None:
        client = await logged_in("view_task")
        task, other = await noop.aenqueue(), await noop.aenqueue()
        answer = await client.get(stream_of(task))
        stream = parts(answer)
        assert await anext(stream) == READY
        subscription = await Subscription.objects.alatest("id")
        assert subscription.task_id == task.id
        await sync_to_async(control.cancel)(other.id)
        await sync_to_async(control.cancel)(task.id)
        await sync_to_async(number_all)()
        assert await anext(stream) == CHANGED
        await close(answer)

    run(body)


def test_the_stream_of_a_workflow_tells_of_its_tasks_to_those_who_may_view_tasks() -> None:
    async def told(client: AsyncClient, workflow: UUID) -> set[str]:
        page = await client.get(reverse("admin:taskqueue_workflow_change", args=[workflow]))
        address = reverse("admin:taskqueue_workflow_stream", args=[workflow])
        assert f'data-refresh-stream="{address}"' in page.content.decode()
        answer = await client.get(address)
        assert await anext(parts(answer)) == READY
        subscription = await Subscription.objects.alatest("id")
        await close(answer)
        await Subscription.objects.all().adelete()
        assert subscription.workflow_id == workflow
        return {kind.partition(".")[0] for kind in subscription.kinds}

    async def body() -> None:
        run_of = await sync_to_async((noop.si() | noop.si()).enqueue)()
        nouns = {"workflow", "step"}
        assert await told(await logged_in(), run_of.id) == {*nouns, "task"}
        assert await told(await logged_in("view_workflow"), run_of.id) == nouns

    run(body)


def test_the_page_of_an_operation_names_its_stream() -> None:
    noop.enqueue()
    operation = control.start_operation("cancel", TaskFilter(everything=True))

    async def body() -> None:
        client = await logged_in()
        page = await client.get(reverse("admin:taskqueue_operation_change", args=[operation.id]))
        address = reverse("admin:taskqueue_operation_stream", args=[operation.id])
        assert f'data-refresh-stream="{address}"' in page.content.decode()
        answer = await client.get(address)
        assert await anext(parts(answer)) == READY
        await close(answer)

    run(body)


def test_an_open_dashboard_has_no_event_written_for_each_task() -> None:
    async def body() -> None:
        client = await logged_in()
        answer = await client.get(STREAM)
        await anext(parts(answer))
        kinds = set((await Subscription.objects.alatest("id")).kinds)
        assert {"task.failed", "task.lost", "queue.paused", "worker.lost"} <= kinds
        assert not kinds & {"task.enqueued", "task.started", "task.succeeded"}
        await close(answer)

    run(body)


def test_streams_of_pages_count_among_those_of_their_user() -> None:
    async def body() -> None:
        client = await logged_in()
        first = await client.get("/api/v1/events/stream/")
        refused = await client.get(STREAM)
        assert (refused.status_code, refused["Retry-After"]) == (503, "30")
        await close(first)
        again = await client.get(STREAM)
        assert again.status_code == 200
        await close(again)

    with override_settings(TASKQUEUE={"STREAMS": {"user": 1}}):
        run(body)


@pytest.mark.parametrize("lost", [{"is_staff": False}, {"is_active": False}])
def test_a_stream_ends_when_its_user_may_no_longer_enter(
    lost: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LOOK", 0.0)

    async def body() -> None:
        client = await logged_in("view_task")
        answer = await client.get(STREAM)
        stream = parts(answer)
        assert await anext(stream) == READY
        await User.objects.aupdate(**lost)
        assert [part async for part in stream if part == CHANGED] == []

    run(body)


def test_to_ask_for_the_headers_alone_opens_no_stream() -> None:
    async def body() -> None:
        client = await logged_in()
        answer = await client.head(STREAM)
        assert (answer.status_code, answer.streaming) == (200, False)
        assert not streams.OPEN._taken

    run(body)
