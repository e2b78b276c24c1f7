"""A task that waits is edited over REST: arguments, deadline, expiry and metadata."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.core.states import TaskStatus
from taskqueue.models import Audit, Task
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.api.tasks.test_detail import path
from tests.engine.test_control import task_that_is
from tests.sample.rest_tasks import order, sign_in, tell
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db


def test_a_waiting_task_can_be_edited(root: ApiClient) -> None:
    task = order.enqueue(1, note="old")
    answer = root.ask(
        "PATCH",
        path(task),
        {"args": [2], "deadline": 60, "expires_after": 30, "metadata": {"a": 1}, "reason": "so"},
    )
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert (told["args"], told["kwargs"], told["metadata"]) == ([2], {"note": "old"}, {"a": 1})
    assert told["deadline_at"] > told["expires_at"] > told["enqueued_at"]
    line = Audit.objects.get()
    assert (line.verb, line.reason) == ("update", "so")
    assert "arguments: item: 1 to 2" in line.detail
    told = root.ask("PATCH", path(task), {"deadline": None, "expires_after": None}).json()
    assert (told["deadline_at"], told["expires_at"]) == (None, None)


@pytest.mark.parametrize(
    "body", [{"args": [1]}, {"deadline": 60}, {"expires_after": 60}, {"metadata": {}}]
)
def test_a_running_task_cannot_be_edited(body: dict[str, Any], root: ApiClient) -> None:
    task = task_that_is(TaskStatus.RUNNING)
    Task.objects.update(name=tell.name)
    told = problem(root.ask("PATCH", path(task), body), 409, "transition_refused")
    assert "can only be changed while it waits" in told["detail"]
    assert not Audit.objects.exists()


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"args": ["x"]}, "invalid_arguments", "/args/0"),
        ({"args": [1, 2, 3]}, "arguments_do_not_bind", "/args/2"),
        ({"kwargs": {"other": 1}}, "arguments_do_not_bind", "/kwargs/other"),
        ({"deadline": 1e12}, "invalid", "/deadline"),
        ({"metadata": []}, "invalid", "/metadata"),
    ],
)
def test_an_edit_refuses_the_same_values_as_an_enqueue_and_points_at_them(
    body: dict[str, Any], code: str, pointer: str, root: ApiClient
) -> None:
    task = order.enqueue(1)
    told = problem(root.ask("PATCH", path(task), body), 422, code)
    assert told["errors"][0]["pointer"] == pointer
    assert not Audit.objects.exists()


def test_other_arguments_take_the_permission_to_enqueue_and_a_type_for_rest(
    root: ApiClient, member: Any
) -> None:
    task, hidden = order.enqueue(1), echo.enqueue(1)
    operator = member("view_task", "operate")
    problem(operator.ask("PATCH", path(task), {"args": [2]}), 403, "permission_denied")
    assert operator.ask("PATCH", path(task), {"deadline": 60}).status_code == 200
    problem(root.ask("PATCH", path(hidden), {"args": [2]}), 403, "task_not_exposed")
    assert root.ask("PATCH", path(hidden), {"metadata": {"a": 1}}).status_code == 200


def test_a_secret_is_written_anew_and_shown_to_nobody(root: ApiClient) -> None:
    task = sign_in.using(unique_key=None).enqueue("bob", password="very secret")
    told = problem(
        root.ask("PATCH", path(task), {"kwargs": {"password": "[redacted]"}}), 422, "redacted_value"
    )
    assert told["errors"][0]["pointer"] == "/kwargs/password"
    answer = root.ask("PATCH", path(task), {"kwargs": {"password": "another one"}})
    assert answer.json()["kwargs"] == {"password": "[redacted]"}
    assert "another one" not in Audit.objects.get().detail


def test_a_secret_is_not_sent_elsewhere_by_the_arguments_beside_it(root: ApiClient) -> None:
    task = sign_in.using(unique_key=None).enqueue("bob", password="very secret")
    for method, address in (("PATCH", path(task)), ("POST", path(task, "retry/"))):
        told = problem(root.ask(method, address, {"args": ["eve"]}), 422, "redacted_value")
        assert told["errors"][0]["pointer"] == "/kwargs/password"
        if method == "PATCH":
            task.cancel()
    assert Task.objects.get().args == ["bob"]
    both = {"args": ["eve"], "kwargs": {"password": "another one"}}
    assert root.act(path(task, "retry/"), both).status_code == 201


def test_an_answer_does_not_tell_whether_a_guess_is_what_is_stored(root: ApiClient) -> None:
    task = sign_in.using(unique_key=None).enqueue("bob", password="very secret")
    for guess in ("bob", "eve"):
        told = root.ask("PATCH", path(task), {"args": [guess]})
        assert problem(told, 422, "redacted_value")["errors"][0]["pointer"] == "/kwargs/password"


def test_an_edit_is_refused_where_the_task_has_changed_since(root: ApiClient) -> None:
    task = order.enqueue(1)
    etag = root.look(path(task))["ETag"]
    root.ask("PATCH", path(task), {"metadata": {"a": 1}})
    answer = root.ask("PATCH", path(task), {"args": [2]}, If_Match=etag)
    problem(answer, 412, "precondition_failed")
