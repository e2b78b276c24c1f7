"""Debounce, throttle, capacity and `unique_per` over REST."""

from __future__ import annotations

from typing import Any

import pytest

from taskqueue.models import Task
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.sample.rest_tasks import crawl, index_doc, remind, tell

pytestmark = pytest.mark.django_db


def test_a_task_beyond_the_capacity_is_a_409(root: ApiClient) -> None:
    body = {"name": crawl.name, "args": ["eu"]}
    assert root.act("tasks/", body).status_code == 201
    told = problem(root.act("tasks/", body), 409, "capacity_reached")
    assert "is reached: 1 unfinished task with this key" in told["detail"]
    assert root.act("tasks/", {**body, "args": ["us"]}).status_code == 201

    many = {"tasks": [{**body, "args": [region]} for region in ("asia", "africa", "asia")]}
    problem(root.act("tasks/bulk/", many), 409, "capacity_reached")
    assert Task.objects.count() == 2, "All or none."


def test_a_throttled_call_is_answered_with_the_task_that_was_let_in(root: ApiClient) -> None:
    body = {"name": remind.name, "args": ["ada"]}
    first = root.act("tasks/", body).json()
    answer = root.act("tasks/", body)
    told = answer.json()
    assert (answer.status_code, told["created"], told["updated"]) == (200, False, False)
    assert told["id"] == first["id"]
    assert Task.objects.count() == 1


def test_a_debounced_call_is_answered_with_the_task_that_it_put_off(root: ApiClient) -> None:
    first = root.act("tasks/", {"name": index_doc.name, "args": [1, "a"]})
    assert (first.status_code, first.json()["status"]) == (201, "scheduled")
    answer = root.act("tasks/", {"name": index_doc.name, "args": [1, "b"]})
    told = answer.json()
    assert (answer.status_code, told["created"], told["updated"]) == (200, False, True)
    assert Task.objects.get().args == [1, "b"]
    codes = [each["code"] for each in root.look(f"tasks/{told['id']}/why/").json()["reasons"]]
    assert codes[0] == "debounced"


@pytest.mark.parametrize("name", ["debounce", "throttle", "capacity"])
@pytest.mark.parametrize("value", [None, {"wait": 5}, 5])
def test_no_request_sets_or_lifts_a_limit(name: str, value: Any, root: ApiClient) -> None:
    for definition in (crawl, remind, index_doc):
        body = {"name": definition.name, "args": ["1"], name: value}
        [told] = problem(root.act("tasks/", body), 422, "invalid")["errors"]
        assert told["pointer"] == f"/{name}"
        assert f"the definition declares it in @task({name}=...)" in told["detail"]
    assert not Task.objects.exists()


@pytest.mark.parametrize("definition", [crawl, remind, index_doc])
@pytest.mark.parametrize(
    "options", [{"unique_key": "k"}, {"workers": 2}, {"broadcast": True}, {"worker_names": ["a"]}]
)
def test_an_option_that_would_bypass_a_limit_is_refused(
    definition: Any, options: dict[str, Any], root: ApiClient
) -> None:
    body = {"name": definition.name, "args": ["1"], **options}
    told = problem(root.act("tasks/", body), 422, "invalid_option")
    assert "exclude each other" in told["detail"]


def test_without_its_key_a_limited_task_is_limited_all_the_same(root: ApiClient) -> None:
    body = {"name": crawl.name, "args": ["eu"], "unique_key": None}
    assert root.act("tasks/", body).status_code == 201
    problem(root.act("tasks/", body), 409, "capacity_reached")


def test_the_limits_of_a_task_type_are_shown(root: ApiClient) -> None:
    def shown(definition: Any) -> list[Any]:
        told = root.look(f"task-types/{definition.name}/").json()
        return [told[name] for name in ("debounce", "throttle", "capacity", "unique_per")]

    assert shown(crawl) == [None, None, 1, None]
    assert shown(remind) == [None, "1/h", None, None]
    assert shown(index_doc) == [60.0, None, None, None]


@pytest.mark.parametrize("per", ["week", 86_400, 366 * 86_400])
def test_a_key_may_hold_for_a_period(per: Any, root: ApiClient) -> None:
    body = {"name": tell.name, "args": [1], "unique_key": True, "unique_per": per}
    first = root.act("tasks/", body)
    assert first.status_code == 201
    told = root.act("tasks/", body).json()
    assert (told["id"], told["created"]) == (first.json()["id"], False)
    assert root.act("tasks/", {**body, "args": [2]}).status_code == 201


@pytest.mark.parametrize("per", ["month", "", 0, 0.5, -1, True, [], {}, 366 * 86_400 + 1, "600"])
def test_a_period_that_cannot_be_is_refused(per: Any, root: ApiClient) -> None:
    answer = root.act("tasks/", {"name": tell.name, "unique_key": "k", "unique_per": per})
    [told] = problem(answer, 422, "invalid")["errors"]
    assert told["pointer"] == "/unique_per"


def test_a_period_needs_a_key(root: ApiClient) -> None:
    answer = root.act("tasks/", {"name": tell.name, "unique_per": "hour"})
    assert "needs a unique_key" in problem(answer, 422, "invalid_option")["detail"]
    body = {"name": tell.name, "unique_key": "k" * 255, "unique_per": "day"}
    assert "may have at most 244 characters" in root.act("tasks/", body).json()["detail"]
