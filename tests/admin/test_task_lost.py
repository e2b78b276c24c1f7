"""The task page lets people end what a lost worker holds, once they know what that means."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.admin.conftest import LogIn
from tests.admin.test_admin import read, url
from tests.admin.test_dashboard import URL
from tests.admin.test_task_acts import press, shown_buttons
from tests.engine.lost_workers import held_by_lost
from tests.engine.steps import task_of

pytestmark = pytest.mark.django_db
WARNING = "the body may still run there"


def asked(client: Client, task: object, verb: str) -> str:
    answer = client.post(url("task", "act", task.id), {"verb": verb, "reason": "why"})  # type: ignore[attr-defined]
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize(("verb", "status"), [("stop", "cancelled"), ("retry", "ready")])
def test_a_page_warns_before_the_attempt_of_a_lost_worker_ends(
    verb: str, status: str, log_in_as: LogIn
) -> None:
    result, _ = held_by_lost()
    client = log_in_as("superuser")
    assert {"stop", "retry"} <= shown_buttons(read(client, url("task", "change", result.id)))
    page = asked(client, result, verb)
    assert WARNING in page
    assert 'value="why"' in page
    assert task_of(result).status == "running"
    press(client, result, verb, confirmed="yes", reason="why")
    assert task_of(result).status == status


def test_who_may_not_stop_tasks_cannot_retry_what_a_lost_worker_holds(log_in_as: LogIn) -> None:
    result, _ = held_by_lost()
    client = log_in_as("viewer", "view_task", "operate")
    assert "retry" not in shown_buttons(read(client, url("task", "change", result.id)))
    assert "Nothing was done." in press(client, result, "retry", confirmed="yes")
    assert task_of(result).status == "running"


def test_a_delete_names_the_remedy(log_in_as: LogIn) -> None:
    result, _ = held_by_lost()
    assert "Its worker is lost: stop it first." in press(log_in_as("superuser"), result, "delete")


def test_the_dashboard_links_the_task(log_in_as: LogIn) -> None:
    result, _ = held_by_lost()
    page = log_in_as("superuser").get(URL).content.decode()
    assert "1 task is held by a lost worker whose lease lasts on" in page
    assert f"/admin/taskqueue/task/{result.id}/change/" in page
