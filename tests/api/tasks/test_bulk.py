"""Many tasks by one request: all or none, in the order of the request."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue.models import Audit, Task
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.sample.rest_tasks import order, pay, refund, sign_in, tell
from tests.sample.tasks import echo

pytestmark = pytest.mark.django_db


def test_all_are_enqueued_and_told_in_their_order(root: ApiClient) -> None:
    tasks: list[dict[str, Any]] = [
        {"name": tell.name, "args": [1]},
        {"name": order.name, "args": [2]},
        {"name": tell.name, "args": [3], "priority": 5},
        {"name": tell.name, "args": [4], "priority": "HIGH"},
        {"name": sign_in.name, "args": ["ann", "x"]},
    ]
    answer = root.act("tasks/bulk/", {"tasks": tasks, "reason": "import"})
    assert answer.status_code == 201, answer.content
    results = answer.json()["results"]
    assert [each["name"] for each in results] == [each["name"] for each in tasks]
    stored = {str(task.id): task for task in Task.objects.all()}
    assert [stored[each["id"]].args for each in results] == [each["args"] for each in tasks]
    assert stored[results[2]["id"]].priority == 5
    assert stored[results[3]["id"]].priority == 50
    assert sorted(Audit.objects.values_list("subject", flat=True)) == sorted(stored)
    assert {each.reason for each in Audit.objects.all()} == {"import"}


def test_a_thousand_cost_few_statements(root: ApiClient) -> None:
    tasks = [{"name": tell.name, "args": [number]} for number in range(1000)]
    with CaptureQueriesContext(connection) as asked:
        answer = root.act("tasks/bulk/", {"tasks": tasks})
    assert answer.status_code == 201
    assert Task.objects.count() == len({each["id"] for each in answer.json()["results"]}) == 1000
    statements = [each for each in asked if "taskqueue_audit" not in each["sql"]]
    assert len(statements) <= 15
    problem(root.act("tasks/bulk/", {"tasks": [*tasks, tasks[0]]}), 422, "invalid")


@pytest.mark.parametrize(
    ("wrong", "status", "pointer"),
    [
        ({"name": tell.name, "priority": 101}, 422, "/tasks/2/priority"),
        ({"name": tell.name, "prioriti": 1}, 422, "/tasks/2/prioriti"),
        ({"name": tell.name, "unique_key": "k\x00"}, 422, "/tasks/2/unique_key"),
        ({"name": tell.name, "kwargs": {"a": [0, 2**64]}}, 422, "/tasks/2/kwargs/a/1"),
        ({"name": order.name, "args": []}, 422, "/tasks/2/kwargs"),
        ({"name": "gone"}, 422, "/tasks/2/name"),
        ({"name": echo.name}, 403, "/tasks/2/name"),
        ({}, 422, "/tasks/2/name"),
        ([], 422, "/tasks/2"),
        (None, 422, "/tasks/2"),
    ],
)
def test_one_that_cannot_be_lets_none_be(
    wrong: Any, status: int, pointer: str, root: ApiClient
) -> None:
    right = {"name": tell.name}
    answer = root.act("tasks/bulk/", {"tasks": [right, right, wrong, right]})
    assert answer.status_code == status, answer.content
    assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]
    assert not Task.objects.exists()
    assert not Audit.objects.exists()


def test_the_errors_of_all_tasks_are_reported_together(root: ApiClient) -> None:
    tasks: list[Any] = [
        {"name": tell.name},
        {"name": tell.name, "priority": 101},
        {"name": "gone"},
        {"name": echo.name},
        {"name": order.name, "args": []},
        {"name": tell.name, "kwargs": {"a": [0, 2**64]}},
        None,
    ]
    answer = root.act("tasks/bulk/", {"tasks": tasks, "reason": 5})
    told = problem(answer, 422, "invalid")
    assert {each["pointer"]: each["code"] for each in told["errors"]} == {
        "/tasks/1/priority": "max_value",
        "/tasks/2/name": "unknown_task",
        "/tasks/3/name": "task_not_exposed",
        "/tasks/4/kwargs": "arguments_do_not_bind",
        "/tasks/5/kwargs/a/1": "invalid_arguments",
        "/tasks/6": "null",
        "/reason": "invalid",
    }
    assert told["detail"].endswith("; and 4 more mistakes")
    assert not Task.objects.exists()
    assert not Audit.objects.exists()


def test_mistakes_of_one_kind_have_its_code(root: ApiClient) -> None:
    unknown = {"tasks": [{"name": "gone"}] * 300}
    assert len(problem(root.act("tasks/bulk/", unknown), 422, "unknown_task")["errors"]) == 300
    hidden = {"tasks": [{"name": echo.name}] * 2}
    problem(root.act("tasks/bulk/", hidden), 403, "task_not_exposed")


@pytest.mark.parametrize("body", [{}, {"tasks": []}, {"tasks": {}}, {"tasks": None}, {"task": []}])
def test_a_body_without_tasks_is_refused(body: Any, root: ApiClient) -> None:
    problem(root.act("tasks/bulk/", body), 422, "invalid")


def test_who_holds_a_key_is_told_and_one_that_raises_undoes_all(root: ApiClient) -> None:
    held = tell.using(unique_key="k").enqueue("first")
    keyed = {"name": tell.name, "unique_key": "k"}
    answer = root.act("tasks/bulk/", {"tasks": [{"name": tell.name}, keyed, keyed]})
    assert answer.status_code == 201
    assert [each["created"] for each in answer.json()["results"]] == [True, False, False]
    assert answer.json()["results"][1]["id"] == str(held.id)
    assert root.act("tasks/bulk/", {"tasks": [keyed]}).status_code == 200
    assert Task.objects.count() == 2
    raising = [{"name": order.name, "args": [1]}, {**keyed, "on_duplicate": "raise"}]
    told = problem(root.act("tasks/bulk/", {"tasks": raising}), 409, "duplicate_task")
    assert told["task_id"] == str(held.id)
    assert [each["pointer"] for each in told["errors"]] == ["/tasks/1/unique_key"]
    assert Task.objects.count() == 2


def test_one_of_the_same_request_that_has_the_key_is_told_by_its_place(root: ApiClient) -> None:
    keyed = {"name": tell.name, "unique_key": "new"}
    other = {**keyed, "unique_key": "other"}
    body = {"tasks": [other, keyed, {"name": tell.name}, {**keyed, "on_duplicate": "raise"}]}
    told = problem(root.act("tasks/bulk/", body), 409, "duplicate_task")
    assert "task_id" not in told
    assert [each["pointer"] for each in told["errors"]] == ["/tasks/3/unique_key"]
    twice = {"tasks": [{**keyed, "on_duplicate": "raise"}] * 2}
    told = problem(root.act("tasks/bulk/", twice), 409, "duplicate_task")
    assert [each["pointer"] for each in told["errors"]] == ["/tasks/1/unique_key"]
    assert not Task.objects.exists()


def test_the_same_key_twice_in_one_request_makes_one_task(root: ApiClient) -> None:
    keyed = {"name": tell.name, "unique_key": "k"}
    results = root.act("tasks/bulk/", {"tasks": [keyed, keyed]}).json()["results"]
    assert [each["created"] for each in results] == [True, False]
    assert results[0]["id"] == results[1]["id"]
    assert Task.objects.count() == 1


def test_sent_again_it_is_answered_as_the_first(root: ApiClient) -> None:
    body = {"tasks": [{"name": tell.name}] * 3}
    answers = [root.act("tasks/bulk/", body, Idempotency_Key="import 7") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert (answers[1].status_code, answers[1]["Idempotency-Replayed"]) == (201, "true")
    assert Task.objects.count() == 3


def test_they_stand_in_line_as_they_were_asked_for(root: ApiClient) -> None:
    tasks: list[dict[str, Any]] = [
        {"name": tell.name, "args": [0]},
        {"name": order.name, "args": [1]},
        {"name": tell.name, "args": [2], "unique_key": "z"},
        {"name": tell.name, "args": [3]},
        {"name": order.name, "args": [4], "unique_key": "a"},
        {"name": tell.name, "args": [5], "workers": 2},
        {"name": order.name, "args": [6]},
        {"name": tell.name, "args": [7], "run_after": 60},
        {"name": order.name, "args": [8], "run_after": 60},
        {"name": tell.name, "args": [9], "run_after": 60, "unique_key": "b"},
    ]
    results = root.act("tasks/bulk/", {"tasks": tasks}).json()["results"]
    in_line = Task.objects.order_by("-priority", "run_after", "id")
    assert [task.args for task in in_line] == [each["args"] for each in tasks]
    assert [str(task.id) for task in in_line] == [each["id"] for each in results]
    assert len({each["enqueued_at"] for each in results}) == 1


def test_the_first_that_asks_for_a_key_gets_it_whatever_its_type(root: ApiClient) -> None:
    for key, names in {"k": (pay, refund), "l": (refund, pay)}.items():
        shared = {"args": [1], "unique_key": key}
        tasks = [{"name": each.name, **shared} for each in names]
        results = root.act("tasks/bulk/", {"tasks": tasks}).json()["results"]
        assert [each["created"] for each in results] == [True, False]
        assert {each["name"] for each in results} == {names[0].name}
        assert Task.objects.get(unique_key=key).name == names[0].name
