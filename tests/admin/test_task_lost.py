"""The task page lets people end a lost worker's attempt after a confirmation."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from taskqueue.control import request_stop
from taskqueue.models import Task
from tests.admin.conftest import LogIn
from tests.admin.test_admin import read, url
from tests.admin.test_dashboard import URL
from tests.admin.test_task_acts import press, shown_buttons
from tests.engine.lost_workers import held_by_lost
from tests.engine.operation_steps import let_begin, serve_all
from tests.engine.steps import task_of

pytestmark = pytest.mark.django_db
WARNING = "code may keep running there"


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
    assert "The task will be" in page
    shown = dict(re.findall(r'type="hidden" name="(verb|confirmed)" value="(\w+)"', page))
    press(client, result, shown["verb"], confirmed=shown["confirmed"], reason="why")
    assert task_of(result).status == status


def test_the_life_of_the_task_tells_of_the_end_once(log_in_as: LogIn) -> None:
    result, _ = held_by_lost()
    request_stop(result.id, by="anna", reason="its host is gone")
    page = read(log_in_as("superuser"), url("task", "change", result.id))
    assert page.count("Asked to stop") == 1
    assert "attempt 1 ended: its worker" in page


def test_the_dialog_of_the_dashboard_leads_to_the_warning(log_in_as: LogIn) -> None:
    result, _ = held_by_lost()
    client = log_in_as("superuser")
    given = {"verb": "stop", "confirmed": "1", "reason": "why", "next": URL}
    page = client.post(url("task", "act", result.id), given).content.decode()
    assert WARNING in page
    assert f'name="next" value="{URL}"' in page
    assert 'value="why"' in page
    assert task_of(result).status == "running"


def test_a_bulk_retry_of_ticked_tasks_warns_and_frees_those_of_a_lost_worker(
    log_in_as: LogIn,
) -> None:
    ids = [str(held_by_lost()[0].id) for _ in range(2)]
    client = log_in_as("superuser")
    given = {"action": "retry_many", "index": "0", "_selected_action": ids}
    page = client.post(url("task", "changelist"), given).content.decode()
    assert "2 tasks allow this action now." in page
    assert "2 tasks are held by lost workers." in page
    given = {"verb": "retry", "ids": ids, "confirmed": "yes"}
    assert client.post("/admin/taskqueue/operation/start/", given).status_code == 302
    let_begin()
    serve_all()
    assert {Task.objects.get(id=each).status for each in ids} == {"ready"}


def test_a_bulk_retry_leaves_what_runs_to_those_who_may_stop(log_in_as: LogIn) -> None:
    ids = [str(held_by_lost()[0].id)]
    client = log_in_as("viewer", "view_task", "operate")
    given = {"action": "retry_many", "index": "0", "_selected_action": ids}
    page = client.post(url("task", "changelist"), given).content.decode()
    assert "No matching task allows this action." in page
    client.post(
        "/admin/taskqueue/operation/start/", {"verb": "retry", "ids": ids, "confirmed": "1"}
    )
    let_begin()
    serve_all()
    assert Task.objects.get(id=ids[0]).status == "running"


def test_who_may_not_stop_tasks_cannot_retry_what_a_lost_worker_holds(log_in_as: LogIn) -> None:
    result, _ = held_by_lost()
    client = log_in_as("viewer", "view_task", "operate")
    assert "retry" not in shown_buttons(read(client, url("task", "change", result.id)))
    assert "Nothing was done." in press(client, result, "retry", confirmed="lost")
    assert task_of(result).status == "running"


def test_a_delete_names_the_remedy(log_in_as: LogIn) -> None:
    result, _ = held_by_lost()
    assert "Its worker is lost: stop it first." in press(log_in_as("superuser"), result, "delete")


def test_the_dashboard_links_the_task(log_in_as: LogIn) -> None:
    result, _ = held_by_lost()
    page = log_in_as("superuser").get(URL).content.decode()
    assert "1 task is held by a lost worker whose lease has not expired" in page
    assert f"/admin/taskqueue/task/{result.id}/change/" in page
