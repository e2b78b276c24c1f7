"""Who may search by worker: the admin and the REST API ask for the same permission."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from taskqueue.control import TaskFilter
from taskqueue.models import Operation, Task
from taskqueue.monitoring.searching import search as searching
from taskqueue.monitoring.searching.search_tokens import SearchError
from tests.admin.conftest import LogIn
from tests.api.conftest import ROOT
from tests.engine.steps import claim
from tests.sample.tasks import add

pytestmark = pytest.mark.django_db

QUERY = "worker:w1"
LIST = "/admin/taskqueue/task/"
EXPORT = "/admin/taskqueue/task/export/"
START = "/admin/taskqueue/operation/start/"
EVERYTHING_ELSE = ("view_task", "view_operation", "operate", "view_worker")


@pytest.fixture
def held() -> str:
    """The id of a task that the worker `w1` runs; another task waits."""
    result = add.enqueue(1)
    claim(worker="w1")
    add.enqueue(2)
    return str(result.id)


class Somebody:
    """Permissions without a user."""

    def __init__(self, *permissions: str) -> None:
        self.permissions = permissions

    def has_perm(self, permission: str) -> bool:
        return permission in self.permissions


def test_only_who_may_view_leases_may_search_by_worker() -> None:
    which = TaskFilter(worker="w1")
    with pytest.raises(searching.SearchNotAllowed, match=r"taskqueue\.view_lease") as refusal:
        searching.permitted_search(which, Somebody("taskqueue.view_task"))
    assert isinstance(refusal.value, SearchError)
    assert searching.permitted_search(which, Somebody("taskqueue.view_lease")) == which
    assert searching.permitted_search(TaskFilter(name="x"), Somebody()) == TaskFilter(name="x")


def test_who_may_view_arguments_searches_those_of_unknown_definitions_too() -> None:
    which = TaskFilter(arguments={"user": ["bob"]})
    assert not searching.permitted_search(which, Somebody()).arguments_of_unknown
    assert searching.permitted_search(
        which, Somebody("taskqueue.view_arguments")
    ).arguments_of_unknown


def test_the_list_of_the_admin_finds_nothing_by_worker_without_it(
    held: str, log_in_as: LogIn
) -> None:
    answer = log_in_as("staff", *EVERYTHING_ELSE).get(LIST, {"q": QUERY})
    content = answer.content.decode()
    assert "taskqueue.view_lease" in content
    assert held not in content
    assert answer.context["cl"].result_count == 0
    assert answer.context["tabs"] == [], "no count tells it either"


def test_the_list_of_the_admin_finds_by_worker_with_it(held: str, log_in_as: LogIn) -> None:
    answer = log_in_as("staff", "view_task", "view_lease").get(LIST, {"q": QUERY})
    assert held in answer.content.decode()


def test_the_export_refuses_a_search_by_worker(held: str, log_in_as: LogIn) -> None:
    client = log_in_as("staff", *EVERYTHING_ELSE)
    for method in (client.get, client.head):
        answer = method(EXPORT, {"q": QUERY, "format": "jsonl"})
        assert answer.status_code == 403
    answer = client.get(EXPORT, {"q": QUERY, "format": "jsonl"})
    assert "taskqueue.view_lease" in answer.content.decode()


def test_an_operation_does_not_start_by_worker_nor_is_estimated(
    held: str, log_in_as: LogIn
) -> None:
    client = log_in_as("staff", *EVERYTHING_ELSE)
    given = {"verb": "update", "q": QUERY, "priority": "5", "confirmed": "1"}
    for answer in (client.get(START, given), client.post(START, given)):
        content = answer.content.decode()
        assert "taskqueue.view_lease" in content
        assert held not in content
        assert answer.context.get("doable") is None
    assert not Operation.objects.exists()
    assert set(Task.objects.values_list("priority", flat=True)) == {0}


def test_the_rest_api_refuses_with_the_same_sentence(held: str, log_in_as: LogIn) -> None:
    client = log_in_as("staff", *EVERYTHING_ELSE)
    start = {"verb": "update", "q": QUERY, "arguments": {"changes": {"priority": 5}}}
    answers = [
        client.get(f"{ROOT}tasks/?q={quote(QUERY)}"),
        client.get(f"{ROOT}tasks/?worker=w1"),
        client.post(f"{ROOT}operations/", start, content_type="application/json"),
    ]
    assert [each.status_code for each in answers] == [403] * 3
    assert all("taskqueue.view_lease" in each.json()["detail"] for each in answers)
