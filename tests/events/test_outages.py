"""Readers of the feed go on where they were after the database was away."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import OperationalError, connection
from django.utils import timezone

from taskqueue import events
from taskqueue.engine import reader_outages
from taskqueue.engine.events.hub import HUB
from taskqueue.engine.reader_outages import Outage
from taskqueue.exceptions import EventsGone, InvalidSubscription
from taskqueue.models import Audience, Subscription, Task, TaskLog
from taskqueue.monitoring import following
from taskqueue.monitoring.following import follow_lines
from tests.engine.steps import another_connection
from tests.events.steps import number_all
from tests.sample.tasks import add, noop
from tests.worker_process import ROOT, wait_until, worker_environment

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 90.0


def cut_all_others() -> None:
    """End all sessions of this database but our own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.mark.postgresql_only
def test_following_in_the_terminal_goes_on_after_its_session_was_cut() -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "taskqueue", "events", "--follow", "--format", "json"],
        cwd=ROOT, env={**os.environ, **worker_environment({})}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        wait_until(Subscription.objects.exists, what="its subscription")
        for seq in (1, 2, 3):
            noop.enqueue()
            number_all()
            assert json.loads(process.stdout.readline())["seq"] == seq
            cut_all_others()
    finally:
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert told.count("The database is not available") >= 2
    assert "going on behind number 1." in told
    assert "Trying again for up to 300 seconds." in told


@pytest.mark.postgresql_only
def test_the_events_of_a_task_go_on_after_all_sessions_were_cut() -> None:
    task = add.enqueue(1)
    seen: list[str] = []

    async def read() -> None:
        async for event in task.events():
            seen.append(event.kind)

    def change(status: str) -> None:
        finished_at = timezone.now() if status == "succeeded" else None
        try:
            Task.objects.update(status=status, finished_at=finished_at)
            number_all()
            cut_all_others()
        finally:
            connection.close()  # That of a thread of its own.

    async def body() -> None:
        reading = asyncio.create_task(read())
        while not HUB._followers or HUB._floor is None:
            await asyncio.sleep(0.01)
        for number, status in enumerate(("retrying", "ready", "succeeded")):
            await sync_to_async(change, thread_sensitive=False)(status)
            while status != "ready" and len(seen) <= number // 2:
                await asyncio.sleep(0.01)
        await asyncio.wait_for(reading, PATIENCE)

    async_to_sync(body)()
    assert seen == ["task.retrying", "task.succeeded"]


@pytest.mark.postgresql_only
def test_the_log_lines_of_a_task_go_on_after_all_sessions_were_cut() -> None:
    task = Task.objects.get(id=add.enqueue(1).id)
    seen: list[str] = []

    async def read() -> None:
        async for page in follow_lines(task.pk):
            seen.extend(line.message for line in page.results)

    def log(message: str) -> None:
        TaskLog.objects.create(
            task=task, attempt=1, level=20, message=message, logged_at=timezone.now()
        )

    def finish() -> None:
        try:
            cut_all_others()
            log("after")
            Task.objects.update(status="cancelled", finished_at=timezone.now())
        finally:
            connection.close()

    def cut_in_a_look(task_id: Any, after: int) -> Any:
        if seen and not cuts:
            cuts.append(after)
            cut_this_session()
        return look(task_id, after)

    cuts: list[int] = []
    look = following._look

    async def body() -> None:
        reading = asyncio.create_task(read())
        while not seen:
            await asyncio.sleep(0.01)
        await sync_to_async(finish, thread_sensitive=False)()
        await asyncio.wait_for(reading, PATIENCE)

    log("before")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(following, "_look", cut_in_a_look)
        async_to_sync(body)()
    assert seen == ["before", "after"]
    assert len(cuts) == 1


def cut_this_session() -> None:
    """End the session of this thread, which does not know it yet."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        ((pid,),) = cursor.fetchall()
    with another_connection() as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))


def test_a_wait_is_told_once_bounded_and_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    outage = Outage(told.append)
    error = OperationalError("gone")
    monkeypatch.setattr(reader_outages, "is_lost", lambda error: True)
    pauses = [outage.wait_after(connection, error) for _ in range(7)]
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    outage.is_over(12)
    outage.is_over(13)
    assert [text.partition(" (")[0].partition(" after")[0] for text in told] == [
        "The database is not available", "The database answers again",
    ]  # fmt: skip
    assert told[1].endswith("going on behind number 12.")
    outage.wait_after(connection, error)
    monkeypatch.setattr(reader_outages, "LONGEST_OUTAGE", -1.0)
    with pytest.raises(OperationalError):
        outage.wait_after(connection, error)


def test_an_error_that_another_try_does_not_mend_is_raised_at_once() -> None:
    with pytest.raises(OperationalError):
        Outage().wait_after(connection, OperationalError("no such table: taskqueue_event"))


def test_a_reader_ahead_of_the_feed_learns_where_to_continue() -> None:
    Audience.objects.create(last_seq=9)

    async def read() -> None:
        async for _ in events.stream(after=12):
            pass

    for ask in (lambda: events.since(12), lambda: async_to_sync(read)()):
        with pytest.raises(
            EventsGone, match=r"number 12 yet: the last one is number 9\."
        ) as caught:
            ask()
        assert caught.value.oldest == 10
    assert events.since(9) == []


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda: events.since("x"), "seq must be a whole number"),  # type: ignore[arg-type]
        (lambda: events.since(-1), "seq must be a whole number from 0"),
        (lambda: events.since(0, limit=0), "limit must be a whole number from 1 to 1,000"),
        (lambda: events.since(0, 5), "text such as 'task.failed', not 5"),  # type: ignore[arg-type]
        (lambda: events.since(0, name=5), "name must be a pattern"),  # type: ignore[arg-type]
        (lambda: events.since(0, task=5), "task must be an id"),  # type: ignore[arg-type]
        (lambda: events.on(noop), r"write @on\('task.failed'\)"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_are_named(ask: Any, why: str) -> None:
    with pytest.raises(InvalidSubscription, match=why):
        ask()
