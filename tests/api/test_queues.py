"""Queues over REST: by pages, one by its name, and paused as they were seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from taskqueue.engine.depths import record_depths
from taskqueue.models import Audit, Queue, Task
from tests.api.conftest import ApiClient
from tests.api.test_operations import make_task
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db


def names_of(root: ApiClient, path: str) -> list[list[str]]:
    """The names on each page."""
    found = []
    while path:
        told = root.look(path).json()
        found.append([each["name"] for each in told["results"]])
        path = (told["next"] or "").partition("/api/v1/")[2]
    return found


def waiting_in(name: str) -> None:
    """A ready task of a queue that needs no row."""
    task = make_task(add.name, status="ready")
    Task.objects.filter(pk=task.pk).update(queue_name=name)


@pytest.fixture
def many() -> None:
    """More queues than any list holds."""
    Queue.objects.bulk_create(Queue(name=f"lane-{number:04}") for number in range(1100))


def test_one_of_many_is_looked_at_and_paused(many: None, root: ApiClient) -> None:
    for name in ("lane-1099", "zz.new"):
        paused = root.act(f"queues/{name}/pause/", {"reason": "a fire"})
        assert paused.status_code == 200, paused.content
        assert paused.json()["is_paused"]
        assert root.look(f"queues/{name}/").json() == paused.json()
        assert not root.act(f"queues/{name}/resume/").json()["is_paused"]
    assert Audit.objects.count() == 4


def test_one_that_only_a_task_waits_in_is_found_among_others(root: ApiClient) -> None:
    for name in ("a", "b", "b", "c"):
        waiting_in(name)
    told = root.look("queues/b/").json()
    assert (told["name"], told["waiting"], told["oldest_seconds"] >= 0) == ("b", 2, True)
    assert root.look("queues/aa/").status_code == 404
    assert root.look("queues/d/").status_code == 404


def test_they_are_listed_by_pages(many: None, root: ApiClient) -> None:
    first = root.look("queues/").json()
    assert (len(first["results"]), first["next"] is not None) == (100, True)
    pages = names_of(root, "queues/?limit=200")
    assert [len(each) for each in pages] == [200] * 5 + [100]
    assert [name for page in pages for name in page] == [
        f"lane-{number:04}" for number in range(1100)
    ]
    for wrong in ("limit=0", "limit=201", "limit=x", "page=2"):
        assert root.look(f"queues/?{wrong}").status_code == 400, wrong


def test_pages_hold_each_once_though_no_worker_has_seen_some(root: ApiClient) -> None:
    names = ["Zoo", "a b", "a-b", "ab", "aB", "é", "mail", "zoo", "ß", "日本"]
    Queue.objects.bulk_create(Queue(name=name) for name in names[::2])
    for name in names[1::2]:
        waiting_in(name)
    pages = names_of(root, "queues/?limit=3")
    assert [len(each) for each in pages] == [3, 3, 3, 1]
    assert sorted([name for page in pages for name in page]) == sorted(names)


def test_who_has_seen_it_otherwise_neither_pauses_nor_resumes_it(
    root: ApiClient, member: Callable[..., ApiClient]
) -> None:
    Queue.objects.create(name="mail")
    seen: Any = root.look("queues/mail/")["ETag"]
    make_task(add.name, status="ready")  # What waits does not count.
    paused = root.act("queues/mail/pause/", if_match=seen)
    assert paused.status_code == 200
    client = member("view_queue", "control_queues")
    for verb in ("pause", "resume"):
        answer = client.act(f"queues/mail/{verb}/", if_match=seen)
        assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed"), verb
    assert Audit.objects.count() == 1
    assert client.act("queues/mail/resume/", if_match=paused["ETag"]).status_code == 200
    for verb in ("pause", "resume"):
        answer = client.act(f"queues/nowhere/{verb}/", if_match=seen)
        assert (answer.status_code, answer.json()["code"]) == (404, "queue_not_found")
    assert not Queue.objects.filter(name="nowhere").exists()


def test_one_tells_its_tasks_by_status_and_how_many_waited(root: ApiClient) -> None:
    waiting_in("mail")
    record_depths(connections["default"])
    told = root.look("queues/mail/").json()
    assert [each for each in told["tasks"] if each["count"]] == [
        {"status": "ready", "count": 1, "is_capped": False}
    ]
    assert (told["per_second"], told["failure_rate"], told["workers"]) == (0.0, None, [])
    depth = root.look("queues/mail/depth/?span=day").json()
    assert len(depth["starts"]) == len(depth["waiting"]) == 96
    assert (depth["waiting"][-1], depth["is_capped"]) == (1, False)
    assert root.look("queues/unknown/depth/").status_code == 404


def test_an_empty_one_is_deleted_and_another_is_not(root: ApiClient) -> None:
    Queue.objects.create(name="old/imports")
    waiting_in("mail")
    assert root.ask("DELETE", "queues/old/imports/?reason=gone").status_code == 204
    assert root.look("queues/old/imports/").status_code == 404
    assert root.ask("DELETE", "queues/old/imports/").status_code == 404
    refused = root.ask("DELETE", "queues/mail/")
    assert (refused.status_code, refused.json()["code"]) == (409, "transition_refused")
    assert Audit.objects.get(verb="delete").reason == "gone"
