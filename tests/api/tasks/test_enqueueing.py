"""One task over REST: what is enqueued, what is answered, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taskqueue import Fixed
from taskqueue.models import Audit, Schedule, Task
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.sample.rest_tasks import order, pay, pay_in, reconcile, refund, register, sign_in, tell
from tests.sample.tasks import echo, greet

pytestmark = pytest.mark.django_db


def test_a_task_is_enqueued_audited_and_found_at_its_address(root: ApiClient) -> None:
    answer = root.act(
        "tasks/", {"name": greet.name, "args": ["Ann"], "priority": 5, "reason": "a test"}
    )
    assert answer.status_code == 201
    told = answer.json()
    assert (told["name"], told["status"], told["created"]) == (greet.name, "ready", True)
    task = Task.objects.get()
    assert (str(task.id), task.args, task.priority) == (told["id"], ["Ann"], 5)
    assert answer["Location"] == f"/api/v1/tasks/{task.id}/"
    assert root.get(answer["Location"]).json()["args"] == ["Ann"]
    audit = Audit.objects.get()
    assert (audit.actor, audit.verb, audit.subject) == ("root", "enqueue", str(task.id))
    assert (audit.reason, "Ann" in audit.detail) == ("a test", False)


def test_every_option_that_json_can_carry_is_taken(root: ApiClient) -> None:
    moment = (timezone.now() + timedelta(days=365)).replace(microsecond=0).isoformat()
    options = {
        "queue_name": "mail", "priority": -3, "run_after": 3600, "max_attempts": 4,
        "backoff": {"policy": "fixed", "seconds": 3}, "max_crashes": 2, "crash_delay": 1.5,
        "timeout": 30, "deadline": moment, "expires_after": 7200,
        "unique_key": "one", "unique_for": "kept", "on_duplicate": "raise", "restart": "failed",
        "workers": 2, "worker_names": ["a", "b"], "lease_duration": 60, "ping_interval": 2,
        "retention": 60, "metadata": {"colour": ["red"]},
    }  # fmt: skip
    answer = root.act("tasks/", {"name": register.name, "args": [1], **options})
    assert answer.status_code == 201, answer.content
    assert answer.json()["status"] == "scheduled"
    task = root.get(answer["Location"]).json()
    same = options.keys() - {
        "run_after", "deadline", "expires_after", "on_duplicate", "restart", "backoff"
    }  # fmt: skip
    assert {name: task[name] for name in same} == {name: options[name] for name in same}
    assert task["backoff"] == Fixed(3).snapshot()
    assert task["deadline_at"] == moment.replace("+00:00", "Z")
    assert task["expires_at"] is not None
    assert root.act("tasks/", {"name": tell.name, "broadcast": True}).status_code == 201


def test_null_stands_for_none_and_what_is_left_out_for_the_definitions_own(
    root: ApiClient,
) -> None:
    answer = root.act("tasks/", {"name": sign_in.name, "args": ["ann", "x"]})
    assert root.get(answer["Location"]).json()["unique_key"] == "sign in a"
    answer = root.act(
        "tasks/",
        {"name": sign_in.name, "args": ["ann", "x"], "unique_key": None, "timeout": None},
    )
    assert answer.status_code == 201
    assert root.get(answer["Location"]).json()["unique_key"] is None


def test_a_duplicate_is_answered_with_who_holds_the_key(root: ApiClient) -> None:
    key = {"unique_key": "k"}
    first = root.act("tasks/", {"name": pay.name, "args": [1], **key}).json()
    again = {"name": refund.name, "args": [2], **key}
    answer = root.act("tasks/", again)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["id"], told["name"], told["created"]) == (first["id"], pay.name, False)
    assert answer["Location"].endswith(f"{first['id']}/")

    same = {"name": pay.name, "args": [3], **key, "on_duplicate": "replace"}
    answer = root.act("tasks/", {**same, "reason": "newer"})
    assert (answer.status_code, answer.json()["updated"]) == (200, True)
    assert Task.objects.get().args == [3]
    assert Audit.objects.latest("id").reason == "newer"

    told = problem(root.act("tasks/", {**again, "on_duplicate": "raise"}), 409, "duplicate_task")
    assert told["task_id"] == first["id"]
    assert Task.objects.count() == 1


def test_a_key_belongs_to_its_type_unless_the_definition_declares_a_scope(
    root: ApiClient,
) -> None:
    for name, scope in ((tell.name, tell.name), (order.name, order.name), (pay.name, "payments")):
        answer = root.act("tasks/", {"name": name, "args": [1], "unique_key": "k"})
        assert (answer.status_code, answer.json()["name"]) == (201, name)
        assert root.get(answer["Location"]).json()["unique_scope"] == scope


@pytest.mark.parametrize("scope", [echo.name, tell.name, "payments", None, 5], ids=str)
def test_no_request_chooses_the_scope_of_a_unique_key(scope: Any, root: ApiClient) -> None:
    kept = {"unique_key": "order-42", "unique_scope": scope}
    body = {"name": tell.name, **kept}
    schedule = {"name": "s", "task": tell.name, "rule": {"kind": "every", "interval": 60}}
    assert root.act("schedules/", schedule).status_code == 201
    for pointer, answer in (
        ("", root.act("tasks/", body)),
        ("/tasks/0", root.act("tasks/bulk/", {"tasks": [body]})),
        ("/options", root.act("schedules/", {**schedule, "name": "t", "options": kept})),
        ("/options", root.ask("PATCH", "schedules/s/", {"options": kept})),
    ):
        [told] = problem(answer, 422, "invalid")["errors"]
        assert told["pointer"] == f"{pointer}/unique_scope"
        assert "the definition declares it in @task(unique_scope=...)" in told["detail"]
    task = tell.enqueue()
    changes = {"verb": "update", "everything": True, "arguments": {"changes": kept}}
    for answer in (
        root.ask("PATCH", f"tasks/{task.id}/", kept),
        root.act(f"tasks/{task.id}/duplicate/", kept),
        root.act("operations/", changes),
    ):
        assert "/unique_scope" in str(problem(answer, 422, "invalid")["errors"])
    assert echo.using(unique_key="order-42").enqueue().created
    assert Schedule.objects.get().options == {}
    assert Task.objects.count() == 2


@pytest.mark.parametrize(
    ("key", "alike", "others"),
    [
        (True, {"args": [7], "kwargs": {"amount": 1}}, {"args": [7], "kwargs": {"amount": 2}}),
        (["item"], {"args": [7, 2]}, {"args": [8]}),
    ],
)
def test_a_key_may_be_made_of_the_arguments(
    key: Any, alike: dict[str, Any], others: dict[str, Any], root: ApiClient
) -> None:
    asked: dict[str, Any] = {"name": order.name, "args": [7], "unique_key": key}
    first = root.act("tasks/", asked).json()
    assert root.act("tasks/", asked | alike).json() == {**first, "created": False}
    assert root.act("tasks/", asked | others).status_code == 201
    answer = root.act("tasks/bulk/", {"tasks": [asked, asked | others, asked | alike]})
    assert [each["created"] for each in answer.json()["results"]] == [False, False, False]


@pytest.mark.parametrize("key", [False, 5, [], [""], [5], ["nothing"], {}, "", "k" * 256])
def test_a_key_that_cannot_be_is_refused(key: Any, root: ApiClient) -> None:
    answer = root.act("tasks/", {"name": order.name, "args": [7], "unique_key": key})
    assert answer.status_code in (400, 422)
    assert answer.json()["errors"][0]["pointer"].startswith("/unique_key")
    assert not Task.objects.exists()


def test_only_definitions_that_say_so_are_enqueued(root: ApiClient) -> None:
    told = problem(root.act("tasks/", {"name": echo.name}), 403, "task_not_exposed")
    assert "api=True" in told["detail"]
    near = greet.name.replace("greet", "gret")
    told = problem(root.act("tasks/", {"name": near}), 422, "unknown_task")
    assert f"Did you mean {greet.name!r}?" in told["detail"]
    assert told["errors"][0]["pointer"] == "/name"
    # What may not be enqueued is not suggested either.
    close = echo.name.replace("echo", "ech")
    assert echo.name not in root.act("tasks/", {"name": close}).json()["detail"]
    assert not Task.objects.exists()


MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "one too many": ({"args": [1, 2, 3]}, "/args/2"),
    "an unknown keyword": ({"args": [1], "kwargs": {"colour": 1}}, "/kwargs/colour"),
    "given twice": ({"args": [1, 2], "kwargs": {"amount": 1}}, "/kwargs/amount"),
    "one by its name that has none": ({"kwargs": {"item": 1}}, "/kwargs/item"),
    "one that lacks": ({}, "/kwargs"),
    "an odd keyword": ({"args": [1], "kwargs": {"a/b~c": 1}}, "/kwargs/a~1b~0c"),
    "a keyword that cannot be shown": ({"args": [1], "kwargs": {"\ud800": 1}}, "/kwargs/\ufffd"),
}


@pytest.mark.parametrize(("call", "pointer"), MISFITS.values(), ids=MISFITS)
def test_arguments_that_do_not_bind_are_refused_with_their_place(
    call: dict[str, Any], pointer: str, root: ApiClient
) -> None:
    answer = root.act("tasks/", {"name": order.name, **call})
    told = problem(answer, 422, "arguments_do_not_bind")
    assert [each["pointer"] for each in told["errors"]] == [pointer]
    assert not Task.objects.exists()


@pytest.mark.parametrize("definition", [sign_in, pay_in])
def test_a_key_that_cannot_be_made_tells_no_argument(definition: Any, root: ApiClient) -> None:
    answer = root.act("tasks/", {"name": definition.name, "args": ["", "secret word"]})
    told = problem(answer, 422, "invalid_arguments")
    assert "IndexError" in told["detail"]
    assert "secret word" not in str(told)


def test_to_enqueue_takes_its_permission_alone(member: Any) -> None:
    client = member("enqueue")
    body = {"name": greet.name, "args": ["Ann"]}
    answer = client.act("tasks/", body)
    assert answer.status_code == 201
    problem(client.get(answer["Location"]), 403, "permission_denied")
    problem(member("view_task", "operate").act("tasks/", body), 403, "permission_denied")


def test_who_enqueues_too_often_is_told_when_to_come_again(root: ApiClient, settings: Any) -> None:
    settings.TASKQUEUE = {"API_THROTTLE_RATES": {"enqueue": "2/min", "read": None}}
    body = {"name": greet.name, "args": ["Ann"]}
    assert [root.act("tasks/", body).status_code for _ in range(2)] == [201, 201]
    answer = root.act("tasks/bulk/", {"tasks": [body]})
    problem(answer, 429, "throttled")
    assert int(answer["Retry-After"]) > 0
    assert root.look("tasks/").status_code == 200
    assert Task.objects.count() == 2


def test_who_may_not_view_tasks_learns_nothing_of_a_holder_of_another_type(
    member: Any, root: ApiClient
) -> None:
    held = reconcile.using(unique_key="payroll").enqueue(1)
    body = {"name": pay.name, "args": [1], "unique_key": "payroll"}
    bare = {
        "id": str(held.id), "created": False, "updated": False, "name": None, "status": None,
        "enqueued_at": None, "ready_at": None,
    }  # fmt: skip
    blind, seeing = member("enqueue"), member("enqueue", "view_task")
    answer = blind.act("tasks/", body)
    assert (answer.status_code, answer.json()) == (200, bare)
    assert answer["Location"].endswith(f"{held.id}/")
    assert blind.act("tasks/bulk/", {"tasks": [body]}).json() == {"results": [bare]}
    assert seeing.act("tasks/", body).json()["name"] == reconcile.name
    for path, wanted in (("tasks/", body), ("tasks/bulk/", {"tasks": [body]})):
        raising: Any = {**body, "on_duplicate": "raise"}
        answer = blind.act(path, raising if wanted is body else {"tasks": [raising]})
        told = problem(answer, 409, "duplicate_task")
        assert (told["task_id"], "ready" in told["detail"]) == (str(held.id), False)
    # One of the type that was asked for is that one's own business.
    mine = blind.act("tasks/", {"name": tell.name, "unique_key": "mine"}).json()
    again = blind.act("tasks/", {"name": tell.name, "unique_key": "mine"}).json()
    assert again == {**mine, "created": False}
