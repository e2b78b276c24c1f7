"""Over REST the task of a lost worker says so, and whoever may stop it frees it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.api.tasks.test_detail import path
from tests.engine.lost_workers import held_by_lost, worker_row
from tests.engine.steps import claim_one, task_of
from tests.sample.rest_tasks import tell

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("act", "status"), [("stop/", "cancelled"), ("cancel/", "cancelled"), ("retry/", "ready")]
)
def test_the_answer_tells_that_the_worker_was_lost(act: str, status: str, root: ApiClient) -> None:
    result, _ = held_by_lost(tell)
    before = root.look(path(result))
    assert (before.json()["status"], before.json()["worker_lost"]) == ("running", True)
    assert {"stop", "cancel", "retry"} <= set(before.json()["can"])
    answer = root.act(path(result, act), {"reason": "its host is gone"}, if_match=before["ETag"])
    assert answer.status_code == 200, answer.content
    assert (answer.json()["status"], answer.json()["worker_lost"]) == (status, True)
    assert task_of(result).status == status


def test_a_task_whose_worker_lives_says_so(root: ApiClient) -> None:
    worker_row()
    result = tell.enqueue("x")
    claim_one()
    told = root.look(path(result)).json()
    assert (told["worker_lost"], "retry" in told["can"]) == (False, False)
    assert root.act(path(result, "stop/")).json()["worker_lost"] is False


def test_who_may_not_stop_tasks_cannot_retry_what_a_lost_worker_holds(
    member: Callable[..., ApiClient],
) -> None:
    result, _ = held_by_lost(tell)
    operator = member("view_task", "operate")
    assert operator.look(path(result)).json()["can"] == ["update"]
    problem(operator.act(path(result, "retry/")), 409, "transition_refused")
    assert task_of(result).status == "running"
    chosen = {"verb": "retry", "filter": {"statuses": ["running"]}}
    told = operator.act("operations/", {**chosen, "dry_run": True})
    assert told.json()["doable"] == 0, told.content


def test_an_operation_tells_how_many_tasks_lost_workers_hold(root: ApiClient) -> None:
    held_by_lost(tell)
    body = {"verb": "stop", "filter": {"statuses": ["running"]}, "dry_run": True}
    told = root.act("operations/", body).json()
    assert (told["doable"], told["held_by_lost"]) == (1, 1)
