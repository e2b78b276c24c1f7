"""The database queries of the admin's pages, however many rows there are."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from taskqueue.admin.base import CappedPaginator
from taskqueue.models import Task
from tests.admin.conftest import LogIn
from tests.admin.rows import Rows, fail_many
from tests.admin.test_admin import MODELS, read, url
from tests.admin.test_task_list import SHORT

MOST_QUERIES = 15
"""Session, user, the user's and the groups' permissions, then the page's own."""
BOUNDED = ("queue", "worker")
"""Lists that are cut at a few hundred rows, and read them whole."""


@pytest.mark.slow
@pytest.mark.parametrize("role", ["viewer", "superuser"])
def test_a_list_of_a_thousand_costs_few_queries(
    role: str, rows: Rows, log_in_as: LogIn, django_assert_max_num_queries: Any
) -> None:
    fail_many(1000)
    client = log_in_as(role)
    for model in MODELS:
        with django_assert_max_num_queries(MOST_QUERIES):
            read(client, url(model, "changelist"))
        with django_assert_max_num_queries(MOST_QUERIES):
            read(client, url(model, "change", rows.of(model).pk))


def test_a_list_reads_no_large_column_and_counts_no_further_than_it_pages(
    rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    for model in (model for model in MODELS if model not in BOUNDED):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            read(client, url(model, "changelist"))
        asked = " ".join(query["sql"] for query in queries if "taskqueue_" in query["sql"])
        # A list of tasks reads arguments, where they take few bytes.
        assert bool(SHORT.search(asked)) == (model == "task"), model
        asked = SHORT.sub("", asked)
        assert "DISTINCT" not in asked
        for column in ("args", "kwargs", "return_value", "traceback", "error_message", "trouble"):
            assert f'"{column}"' not in asked, model
        for query in queries:
            if "COUNT(" in query["sql"]:
                assert "LIMIT 10000" in query["sql"]


def test_lists_are_in_the_order_of_the_key_whatever_the_address_says(
    rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    with CaptureQueriesContext(connection) as queries:
        read(client, url("task", "changelist") + "?o=2.-3")
    asked = [query["sql"] for query in queries]
    [page] = [sql for sql in asked if "LIMIT 51" in sql and '"taskqueue_task"' in sql]
    assert 'ORDER BY "taskqueue_task"."id" DESC' in page


def test_behind_the_last_page_a_capped_list_says_that_there_is_more(
    rows: Rows, log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CappedPaginator, "most", 100)
    client = log_in_as("superuser")
    assert "There are more" not in read(client, url("lease", "changelist"))
    fail_many(150)
    page = read(client, url("lease", "changelist"))
    assert "Only the first 100" in page
    last = client.get(url("lease", "changelist"), {"p": 2})
    assert len(last.context["cl"].result_list) == 50
    assert client.get(url("lease", "changelist"), {"p": 3}).status_code == 302


def test_a_task_with_many_attempts_shows_the_newest_only(rows: Rows, log_in_as: LogIn) -> None:
    task = Task.objects.get(pk=rows.task.pk)
    for attempt in range(2, 200):
        rows.lease.pk, rows.lease.attempt = None, attempt
        rows.lease.save()
    response = log_in_as("superuser").get(url("task", "change", task.pk))
    attempts = [lease.attempt for lease in response.context["leases"]]
    assert len(attempts) == 50
    assert attempts[0] == 199
    assert ">199</a>" in response.content.decode()


def test_counting_a_plain_list_needs_no_database() -> None:
    assert CappedPaginator([1, 2, 3], 2).count == 3
