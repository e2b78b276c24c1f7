"""Actions of the task list: on ticked tasks, and on all tasks that the search finds."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.models import Operation
from tests.admin.conftest import LogIn
from tests.admin.test_admin import read, url
from tests.engine.operation_steps import fail, fill

pytestmark = pytest.mark.django_db


def act(client: Client, verb: str, *, query: str = "", **given: Any) -> Any:
    address = url("task", "changelist") + (f"?q={query}" if query else "")
    return client.post(address, {"action": f"{verb}_many", "index": "0", **given})


def hidden(page: str, name: str) -> int:
    return page.count(f'name="{name}"')


def test_ticked_tasks_are_listed_for_confirmation(log_in_as: LogIn) -> None:
    ids = fail(4)
    client = log_in_as("superuser")
    response = act(client, "retry", _selected_action=[str(each) for each in ids[:3]])
    page = response.content.decode()
    assert response.status_code == 200
    assert hidden(page, "ids") == 3
    assert "3 tasks allow this action now" in page
    assert 'action="/admin/taskqueue/operation/start/"' in page
    assert not Operation.objects.exists()


def test_all_that_the_search_finds_is_asked_about_without_reading_it(
    log_in_as: LogIn, django_assert_max_num_queries: Any
) -> None:
    ids = fail(30)
    fill(5)
    client = log_in_as("superuser")
    ticked = [str(each) for each in ids[:2]]
    with django_assert_max_num_queries(30):
        response = act(
            client, "retry", query="status:failed", select_across="1", _selected_action=ticked
        )
    page = response.content.decode()
    assert hidden(page, "ids") == 0
    assert 'name="q" value="status:failed"' in page
    assert "30 tasks allow this action now" in page


def test_all_of_a_list_that_is_not_narrowed_says_so(log_in_as: LogIn) -> None:
    ids = fail(3)
    client = log_in_as("superuser")
    ticked = [str(each) for each in ids[:1]]
    page = act(client, "retry", select_across="1", _selected_action=ticked).content.decode()
    assert hidden(page, "ids") == 0
    assert 'name="everything" value="1"' in page
    assert "3 tasks allow this action now" in page


def test_ticks_that_are_no_ids_are_left_out(log_in_as: LogIn) -> None:
    ids = fail(2)
    client = log_in_as("superuser")
    response = act(client, "retry", _selected_action=["nonsense", str(ids[0]), "\0"])
    assert hidden(response.content.decode(), "ids") == 1
    assert act(client, "cancel", _selected_action=["nonsense"]).status_code in (200, 302)


def test_only_actions_that_one_may_use_are_offered(log_in_as: LogIn) -> None:
    fill(1)
    client = log_in_as("staff", "view_task", "purge")
    page = read(client, url("task", "changelist"))
    assert 'value="delete_many"' in page
    assert not [verb for verb in BULK_VERBS if verb != "delete" and f'value="{verb}_many"' in page]


def test_users_who_may_only_view_see_no_action(log_in_as: LogIn) -> None:
    fill(1)
    page = read(log_in_as("viewer"), url("task", "changelist"))
    assert "_many" not in page
    assert 'name="action"' not in page


def test_an_action_that_there_is_not_is_refused(log_in_as: LogIn) -> None:
    ids = fill(1)
    client = log_in_as("superuser")
    assert act(client, "drop", _selected_action=[str(ids[0])]).status_code == 403
    given = {"action": "delete_selected", "index": "0", "_selected_action": str(ids[0])}
    assert client.post(url("task", "changelist"), given).status_code == 403
