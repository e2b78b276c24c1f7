"""Workers over REST."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue.models import Audit, Worker
from tests.api.conftest import ApiClient

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker() -> Worker:
    now = timezone.now()
    return Worker.objects.create(
        name="host/1", host="host", pid=7, started_at=now, seen_at=now + timedelta(minutes=5),
        queues={"mail": 1}, concurrency=4, versions={"taskqueue": "0.1"},
    )  # fmt: skip


def test_workers_are_told_with_what_they_are_at(root: ApiClient, worker: Worker) -> None:
    [found] = root.look("workers/").json()["results"]
    assert found == root.look("workers/host/1/").json()
    assert (found["name"], found["state"], found["is_alive"]) == ("host/1", "active", True)
    assert (found["busy"], found["slots"], found["queues"]) == (0, 4, ["mail"])
    assert found["version"] == "0.1"


@pytest.mark.parametrize("verb", ["quiet", "stop", "kill"])
def test_a_worker_is_asked_and_the_act_is_audited(
    verb: str, member: Callable[..., ApiClient], worker: Worker
) -> None:
    client = member("view_worker", "stop")
    answer = client.act(f"workers/host/1/{verb}/", {"reason": "a new kernel"})
    assert (answer.status_code, answer.json()["request"]) == (202, verb)
    worker.refresh_from_db()
    assert (worker.request, worker.request_reason) == (verb, "a new kernel")
    assert (Audit.objects.get().noun, Audit.objects.get().verb) == ("worker", verb)


def test_who_may_not_stop_asks_nothing(member: Callable[..., ApiClient], worker: Worker) -> None:
    client = member("view_worker", "operate")
    assert client.act("workers/host/1/kill/").status_code == 403
    worker.refresh_from_db()
    assert worker.request == ""


def test_they_are_listed_by_pages(root: ApiClient, worker: Worker) -> None:
    rows = [Worker(pk=None, name=f"w{number:03}", started_at=worker.started_at,
                   seen_at=worker.seen_at, status="stopped", concurrency=1, host="h", pid=1)
            for number in range(150)]  # fmt: skip
    Worker.objects.bulk_create(rows)
    first = root.look("workers/").json()
    assert [each["name"] for each in first["results"]][:2] == ["host/1", "w000"]
    second = root.look(first["next"].partition("/api/v1/")[2]).json()
    assert ([len(each["results"]) for each in (first, second)], second["next"]) == ([100, 51], None)
    assert root.look("workers/?limit=201").status_code == 400


def test_who_has_seen_it_otherwise_asks_nothing(root: ApiClient, worker: Worker) -> None:
    seen = root.look("workers/host/1/")["ETag"]
    Worker.objects.update(memory_bytes=5)  # A ping does not count.
    asked = root.act("workers/host/1/quiet/", if_match=seen)
    assert (asked.status_code, asked.json()["request"]) == (202, "quiet")
    for verb in ("quiet", "stop", "kill"):
        answer = root.act(f"workers/host/1/{verb}/", if_match=seen)
        assert (answer.status_code, answer.json()["code"]) == (412, "precondition_failed"), verb
    assert root.act("workers/host/1/stop/", if_match=asked["ETag"]).status_code == 202


def test_a_quiet_worker_is_resumed_and_one_that_is_to_stop_is_not(
    root: ApiClient, worker: Worker
) -> None:
    refusal: Any = root.act("workers/host/1/resume/")
    assert (refusal.status_code, refusal.json()["code"]) == (409, "transition_refused")
    root.act("workers/host/1/quiet/", {"reason": "a deploy"})
    answer: Any = root.act("workers/host/1/resume/", {"reason": "it is over"})
    assert (answer.status_code, answer.json()["request"]) == (202, "")
    assert Audit.objects.get(noun="worker", verb="resume").reason == "it is over"
    root.act("workers/host/1/stop/")
    refusal = root.act("workers/host/1/resume/")
    assert (refusal.status_code, "is to stop" in refusal.json()["detail"]) == (409, True)


@pytest.mark.parametrize("name", ["nobody", "nobody/quiet", "%00", "%ff"])
def test_one_that_is_not_there_is_not_found(root: ApiClient, worker: Worker, name: str) -> None:
    answer: Any = root.act(f"workers/{name}/stop/")
    assert (answer.status_code, answer.json()["code"]) == (404, "worker_not_found")
    answer = root.look(f"workers/{name}/")
    # The last part of the address is a verb, which is not for reading.
    expected = (405, "method_not_allowed") if name.endswith("/quiet") else (404, "worker_not_found")
    assert (answer.status_code, answer.json()["code"]) == expected


def test_one_that_has_ended_is_shown_and_not_asked(root: ApiClient, worker: Worker) -> None:
    Worker.objects.update(status="stopped")
    assert root.look("workers/host/1/").json()["state"] == "stopped"
    answer: Any = root.act("workers/host/1/quiet/")
    assert (answer.status_code, answer.json()["code"]) == (404, "worker_not_found")
    assert "there is nobody to ask" in answer.json()["detail"]


def test_an_address_that_there_is_not_is_told_so_as_all_else_is(
    root: ApiClient, anonymous: ApiClient
) -> None:
    for path in ("workers/a%0Ab/", "nowhere/", "queues/a%0A/pause/"):
        for method in ("GET", "POST", "DELETE"):
            answer = root.ask(method, path)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
            assert anonymous.ask(method, path).status_code == 401


def test_a_worker_is_changed_and_shows_what_is_wanted(root: ApiClient, worker: Worker) -> None:
    seen = root.look("workers/host/1/")["ETag"]
    body = {
        "concurrency": 2, "queues": "mail=3@2,web", "strict": True, "definition_slots": "a=1",
        "reason": "why",
    }  # fmt: skip
    answer = root.act("workers/host/1/change/", body, if_match=seen)
    assert answer.status_code == 202
    told = answer.json()
    assert told["wanted"] == {
        "concurrency": 2, "queues": "mail=3@2,web=1", "strict": True, "definition_slots": "a=1"
    }  # fmt: skip
    assert (told["slots"], told["wanted_reason"], told["wanted_seen_at"]) == (4, "why", None)
    assert root.act("workers/host/1/change/", body, if_match=seen).status_code == 412
    Worker.objects.update(status="stopped")
    assert root.act("workers/host/1/change/", body).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": "4"}, "concurrency"),
        ({"concurrency": 1001}, "concurrency"),
        ({"queues": ["mail"]}, "queues"),
        ({"queue": "mail"}, "queue"),
        ({"strict": "yes"}, "strict"),
        ({"strict": True, "queues": ""}, None),
        ({"queues": "mail@0"}, None),
        ({"definition_slots": "a"}, None),
        ({}, None),
    ],
)
def test_a_change_that_no_worker_can_make_is_refused(
    body: dict[str, Any], field: str | None, root: ApiClient, worker: Worker
) -> None:
    answer = root.act("workers/host/1/change/", body)
    assert answer.status_code == 422
    assert field is None or field in str(answer.json())
    worker.refresh_from_db()
    assert worker.wanted == {}
