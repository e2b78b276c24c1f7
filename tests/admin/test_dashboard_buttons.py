"""Buttons of the dashboard: only for users with the permission, and only where they can work."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue.admin.links import Links
from taskqueue.models import Queue, Task, Worker
from tests.admin.conftest import LogIn
from tests.admin.test_dashboard import (
    CARDS,
    URL,
    make_running,
    make_worker,
    read,
    region,
    words,
)


@pytest.fixture
def worker(db: None) -> Worker:
    """One that lives, and takes from all queues."""
    return make_worker("worker-1")


def buttons(page: str) -> list[tuple[str, str]]:
    """The address and the verb of each."""
    return re.findall(r'formaction="([^"]+)" name="verb" value="(\w+)"', page)


def test_who_may_only_view_is_shown_no_button(log_in_as: LogIn, worker: Worker) -> None:
    make_running(worker)
    Queue.objects.create(name="default")
    page = read(log_in_as("viewer"))
    assert buttons(page) == []
    assert "data-ask=" not in page


@pytest.mark.parametrize(
    ("permission", "verbs"),
    [("control_queues", ["pause"]), ("stop", ["stop", "quiet", "stop", "kill"])],
)
def test_buttons_are_for_those_who_may_do_what_they_say(
    permission: str, verbs: list[str], log_in_as: LogIn, worker: Worker
) -> None:
    make_running(worker)
    Queue.objects.create(name="default")
    page = read(log_in_as("viewer", "view_task", *CARDS, permission))
    assert [verb for _url, verb in buttons(page)] == verbs


def test_buttons_post_to_what_they_are_about(log_in_as: LogIn, worker: Worker) -> None:
    task = make_running(worker)
    Task.objects.update(queue_name="a/b & c")
    page = read(log_in_as("superuser"))
    of_worker = f"/admin/taskqueue/worker/{worker.pk}/act/"
    assert buttons(page) == [
        (f"/admin/taskqueue/task/{task.pk}/act/", "stop"),
        (Links("admin").url("queue_act", "a/b & c"), "pause"),
        *((of_worker, verb) for verb in ("quiet", "stop", "kill")),
    ]


def test_a_button_does_what_it_says_and_leads_back(log_in_as: LogIn, worker: Worker) -> None:
    Queue.objects.create(name="default")
    client = log_in_as("superuser")
    page = read(client, span="day")
    assert f'name="next" value="{URL}?span=day"' in page
    (url, verb), *_others = buttons(page)
    given = {"verb": verb, "reason": "a deploy", "next": f"{URL}?span=day"}
    assert client.post(url, given).headers["Location"] == f"{URL}?span=day"
    page = read(client)
    assert "by user: a deploy" in words(region(page, "queues"))
    assert buttons(page)[0] == (url, "resume")


@pytest.mark.parametrize(
    ("fields", "verbs"),
    [
        ({"status": "quiet"}, ["resume", "stop", "kill"]),
        ({"status": "stopping"}, ["kill"]),
        ({"status": "lost"}, []),
        ({"seen_at": timezone.now() - timedelta(hours=3)}, []),
    ],
)
def test_a_worker_is_asked_only_what_it_can_still_do(
    fields: dict[str, Any], verbs: list[str], log_in_as: LogIn
) -> None:
    make_worker("worker-1", **fields)
    assert [verb for _url, verb in buttons(read(log_in_as("superuser")))] == verbs
