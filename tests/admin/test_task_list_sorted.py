"""The list of tasks, sorted by its columns, and the arguments in its rows."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue.admin.tasks import previews
from taskqueue.models import Task
from taskqueue.monitoring.searching import sorting
from tests.admin.conftest import LogIn
from tests.admin.test_admin import read, url
from tests.engine.operation_steps import fail, fill
from tests.sample.tasks import echo, log_in

pytestmark = pytest.mark.django_db
MOST_QUERIES = 22
"""Those of the list, the candidates with two for each window, their attempts, and the page."""


def listed(client: Any, **given: str) -> Any:
    return client.get(url("task", "changelist"), given)


def priorities(response: Any) -> list[int]:
    return [task.priority for task in response.context["cl"].result_list]


def test_a_heading_sorts_the_list_and_turns_it_round(log_in_as: LogIn) -> None:
    for priority in (3, 9, 5):
        fill(1, priority=priority)
    client = log_in_as("staff", "view_task")
    assert "sort=-priority" in listed(client).content.decode()
    response = listed(client, sort="-priority")
    assert priorities(response) == [9, 5, 3]
    page = response.content.decode()
    assert 'aria-sort="descending"' in page
    assert "?sort=priority" in page
    assert priorities(listed(client, sort="priority")) == [3, 5, 9]


def test_tabs_and_pages_keep_the_sorting(log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(120)
    client = log_in_as("staff", "view_task")
    response = listed(client, sort="priority")
    page = response.content.decode()
    assert "?q=status%3Afailed&amp;sort=priority" in page
    ids = [task.pk for task in response.context["cl"].result_list]
    for _page in range(2):
        response = client.get(url("task", "changelist") + response.context["cl"].older_url)
        ids += [task.pk for task in response.context["cl"].result_list]
    assert len(ids) == len(set(ids)) == 120
    assert not response.context["cl"].older_url
    response = client.get(url("task", "changelist") + response.context["cl"].newer_url)
    assert [task.pk for task in response.context["cl"].result_list] == ids[50:100]


def test_the_list_says_where_only_some_were_sorted(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "MOST_SORTED", 10)
    fill(12)
    client = log_in_as("staff", "view_task")
    page = listed(client, sort="name").content.decode()
    assert "10 of them are sorted: narrow the search" in page
    assert "of them are sorted" not in listed(client, sort="created").content.decode()


@pytest.mark.parametrize("sort", ["", "nonsense", "-", "-nonsense", "priority__gt", "\0"])
def test_an_invalid_ordering_leaves_the_default_order(log_in_as: LogIn, sort: str) -> None:
    fill(3)
    response = listed(log_in_as("staff", "view_task"), sort=sort)
    ids = [task.pk for task in response.context["cl"].result_list]
    assert ids == sorted(ids, reverse=True)


@pytest.mark.parametrize("sort", sorting.SORTINGS)
def test_a_sorted_page_costs_few_queries_however_many_tasks_there_are(
    log_in_as: LogIn, sort: str, django_assert_max_num_queries: Any
) -> None:
    fail(60)
    fill(60)
    client = log_in_as("superuser")
    with django_assert_max_num_queries(MOST_QUERIES):
        listed(client, sort=sort)


def test_rows_show_the_beginning_of_their_arguments(log_in_as: LogIn) -> None:
    echo.enqueue(42, note="x" * 200)
    page = listed(log_in_as("staff", "view_task")).content.decode()
    assert "42, note=&quot;xxx" in page
    assert "x" * 60 not in page


@pytest.mark.parametrize("permissions", [("view_task",), ("view_task", "view_arguments")])
def test_rows_show_no_sensitive_argument(log_in_as: LogIn, permissions: tuple[str, ...]) -> None:
    log_in.enqueue("ann", password="hunter2-secret")
    page = listed(log_in_as("staff", *permissions)).content.decode()
    assert "hunter2-secret" not in page
    assert "[redacted]" in page


@pytest.mark.parametrize("permission", [(), ("view_arguments",)])
def test_arguments_of_unknown_definitions_take_a_permission(
    log_in_as: LogIn, permission: tuple[str, ...]
) -> None:
    echo.enqueue("open-sesame")
    Task.objects.update(name="shop.gone")
    page = listed(log_in_as("staff", "view_task", *permission)).content.decode()
    assert ("open-sesame" in page) == bool(permission)


def test_large_arguments_are_not_read_for_a_list(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "MOST_BYTES", 50)
    echo.enqueue("a rather long argument, longer than is read for any row of a list")
    echo.enqueue("short")
    client = log_in_as("staff", "view_task")
    with CaptureQueriesContext(connection) as queries:
        page = read(client, url("task", "changelist"))
    assert "short" in page
    assert "rather long" not in page
    assert len([each for each in queries if '"args"' in each["sql"]]) == 1
