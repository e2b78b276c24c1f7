"""Task types over REST: what may be enqueued, and with which arguments."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from taskqueue.declarations.definition import registry
from tests.api.conftest import ApiClient
from tests.sample.rest_tasks import sign_in
from tests.sample.tasks import add, greet

pytestmark = pytest.mark.django_db


def test_those_are_listed_that_may_be_enqueued(root: ApiClient) -> None:
    names = [each["name"] for each in root.look("task-types/").json()["results"]]
    assert names == [each.name for each in registry.all() if each.options.api]
    assert greet.name in names
    assert add.name not in names


def test_one_is_shown_with_a_schema_that_its_calls_fit(root: ApiClient) -> None:
    told = root.look(f"task-types/{greet.name}/").json()
    assert told["doc"].startswith("What may be enqueued over REST.\n\nWith a signature")
    assert (told["queue_name"], told["max_attempts"], told["timeout"]) == ("default", 1, None)
    fits = Draft202012Validator(told["arguments"]).is_valid
    assert fits({"kwargs": {"name": "Ann", "tone": "cold"}})
    assert not fits({"kwargs": {"tone": "cold"}})
    body = {"name": greet.name, "kwargs": {"name": "Ann", "tone": "cold"}}
    assert root.act("tasks/", body).status_code == 201


def test_a_task_type_names_its_sensitive_arguments(root: ApiClient) -> None:
    told = root.look(f"task-types/{sign_in.name}/").json()
    assert (told["sensitive"], told["has_unique_key"]) == (["password"], True)
    assert told["arguments"]["properties"]["kwargs"]["properties"]["password"]["writeOnly"]


@pytest.mark.parametrize("name", [add.name, "tests.sample.tasks.greed", "gone", "a/b", "%00"])
def test_others_are_not_found(root: ApiClient, name: str) -> None:
    answer = root.look(f"task-types/{name}/")
    assert (answer.status_code, answer.json()["code"]) == (404, "task_type_not_found")
    if name.endswith("greed"):
        assert f"Did you mean '{greet.name}'" in answer.json()["detail"]
