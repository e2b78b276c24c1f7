"""Verbs on a task over REST: allowed states, permissions, and answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED, PENDING, WAITING, TaskStatus
from taskqueue.models import Audit, Lease, Task
from taskqueue.results import get_result
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.api.tasks.test_detail import path
from tests.engine.steps import claim_one, end
from tests.engine.test_control import task_that_is
from tests.sample.rest_tasks import order, sign_in, tell
from tests.sample.tasks import echo, log_in

pytestmark = pytest.mark.django_db

ACTS: dict[str, tuple[frozenset[TaskStatus], dict[str, Any]]] = {
    "retry/": (FINISHED, {}),
    "cancel/": (frozenset({*PENDING, TaskStatus.RUNNING}), {}),
    "stop/": (frozenset({TaskStatus.RUNNING}), {}),
    "run-now/": (WAITING, {}),
    "reschedule/": (frozenset({*WAITING, TaskStatus.READY}), {"run_after": 60}),
    "duplicate/": (frozenset(TaskStatus), {}),
}


@pytest.mark.parametrize("status", sorted(TaskStatus))
@pytest.mark.parametrize("act", ACTS)
def test_an_act_is_done_where_the_status_allows_it_and_audited(
    act: str, status: TaskStatus, root: ApiClient
) -> None:
    result = task_that_is(status)
    Task.objects.update(name=tell.name)
    allowed, body = ACTS[act]
    answer = root.act(path(result, act), {**body, "reason": "because"})
    if status in allowed:
        expected = {"duplicate/": 201}.get(act, 202 if status == TaskStatus.RUNNING else 200)
        assert answer.status_code == expected, answer.content
        assert {each.reason for each in Audit.objects.all()} == {"because"}
        assert {each.actor for each in Audit.objects.all()} == {"root"}
        task = Task.objects.get(id=answer.json()["id"])
        assert answer.json()["status"] == task.status
        assert answer["ETag"] == root.look(path(task))["ETag"]
    else:
        told = problem(answer, 409, "transition_refused")
        assert str(status) in told["detail"]
        assert not Audit.objects.exists()
        assert get_result(result.id).status == status


def test_a_stop_is_asked_for_with_who_and_why(root: ApiClient) -> None:
    result = task_that_is(TaskStatus.RUNNING)
    told = root.act(path(result, "stop/"), {"reason": "too long"}).json()
    assert told["status"] == "running"
    (held,) = told["running"]
    assert (held["stop_requested_by"], held["stop_reason"]) == ("root", "too long")


def test_to_cancel_what_runs_takes_the_permission_to_stop(member: Any) -> None:
    operator = member("view_task", "operate")
    running, waiting = task_that_is(TaskStatus.RUNNING), echo.enqueue()
    answer = operator.act(path(running, "cancel/"))
    problem(answer, 403, "permission_denied")
    assert Lease.objects.get().stop_requested_at is None
    assert operator.act(path(waiting, "cancel/")).json()["status"] == "cancelled"
    problem(operator.act(path(waiting, "cancel/")), 409, "transition_refused")
    assert member("view_task", "operate", "stop").act(path(running, "cancel/")).status_code == 202


def test_a_retry_with_other_arguments_is_a_new_task(root: ApiClient) -> None:
    old = order.using(priority=4).enqueue(1, note="old")
    end(claim_one(), OutcomeKind.FAILED, error_class="E")
    answer = root.act(path(old, "retry/"), {"kwargs": {"note": "new"}, "reason": "typo"})
    assert answer.status_code == 201
    told = answer.json()
    assert (told["args"], told["kwargs"], told["priority"]) == ([1], {"note": "new"}, 4)
    assert told["retry_of"] == str(old.id)
    assert answer["Location"] == f"/api/v1/tasks/{told['id']}/"
    old_now = root.look(path(old)).json()
    assert (old_now["status"], old_now["retries"]) == ("failed", [told["id"]])


def test_other_arguments_take_what_an_enqueue_takes(root: ApiClient, member: Any) -> None:
    old = order.enqueue(1)
    end(claim_one(), OutcomeKind.FAILED, error_class="E")
    operator = member("view_task", "operate")
    answer = operator.act(path(old, "retry/"), {"args": [2]})
    problem(answer, 403, "permission_denied")
    told = problem(root.act(path(old, "retry/"), {"args": [1, 2, 3]}), 422, "arguments_do_not_bind")
    assert told["errors"][0]["pointer"] == "/args/2"
    deep = root.act(path(old, "retry/"), {"kwargs": {"note": 2**70}})
    assert problem(deep, 422, "invalid_arguments")["errors"][0]["pointer"] == "/kwargs/note"
    closed = log_in.enqueue("ann", "x")
    end(claim_one(), OutcomeKind.FAILED, error_class="E")
    problem(root.act(path(closed, "retry/"), {"args": ["a", "b"]}), 403, "task_not_exposed")
    Task.objects.filter(id=closed.id).update(name="shop.gone")
    problem(root.act(path(closed, "retry/"), {"args": []}), 403, "task_not_exposed")
    assert Task.objects.count() == 2
    assert operator.act(path(old, "retry/")).status_code == 200


def test_a_redacted_value_copied_from_a_response_is_refused(root: ApiClient) -> None:
    sign_in.enqueue("ann", "hush")
    end(claim_one(), OutcomeKind.FAILED, error_class="E")
    old = Task.objects.get()
    told = root.look(path(old)).json()
    copied = {"args": ["bob", told["args"][1]], "kwargs": {}}
    refused = root.act(path(old, "retry/"), copied)
    assert problem(refused, 422, "redacted_value")["errors"][0]["pointer"] == "/args/1"
    again = {"name": sign_in.name, "args": ["bob"], "kwargs": {"password": told["args"][1]}}
    refused = root.act("tasks/", again)
    told = problem(refused, 422, "redacted_value")
    assert told["errors"][0]["pointer"] == "/kwargs/password"
    assert Task.objects.count() == 1
    assert root.act(path(old, "retry/"), {"args": ["[redacted]", "x"]}).status_code == 201


def test_a_duplicate_is_of_a_type_that_says_so(root: ApiClient) -> None:
    closed = echo.enqueue()
    problem(root.act(path(closed, "duplicate/")), 403, "task_not_exposed")
    assert "duplicate" not in root.look(path(closed)).json()["can"]
    Task.objects.update(name="shop.gone")
    problem(root.act(path(closed, "duplicate/")), 403, "task_not_exposed")
    assert Task.objects.count() == 1
    assert "duplicate" in root.look(path(tell.enqueue())).json()["can"]


def test_a_duplicate_may_have_other_terms(root: ApiClient) -> None:
    result = tell.enqueue(1)
    answer = root.act(path(result, "duplicate/"), {"queue_name": "mail", "priority": 2})
    assert answer.status_code == 201
    told = answer.json()
    assert (told["queue_name"], told["priority"], told["args"]) == ("mail", 2, [1])
    assert UUID(told["id"]) != result.id
    assert answer["Location"].endswith(f"{told['id']}/")


@pytest.mark.parametrize(
    ("when", "is_right"),
    [
        (60, True),
        pytest.param((timezone.now() + timedelta(days=365)).isoformat(), True, id="in a year"),
        ("9999-01-01T00:00:00Z", False),
        (3e9, False),
        ("2099-01-01T00:00:00", False),
        ("tomorrow", False),
        (-1, False),
        (1e300, False),
        (10**400, False),
        (None, False),
        (True, False),
        ("9999-12-31T23:59:59-05:00", False),
    ],
)
def test_another_time_is_a_moment_with_its_offset_or_seconds(
    when: Any, is_right: bool, root: ApiClient
) -> None:
    result = echo.enqueue()
    answer = root.act(path(result, "reschedule/"), {"run_after": when})
    assert answer.status_code == (200 if is_right else 422)
    if not is_right:
        assert answer.json()["errors"][0]["pointer"] == "/run_after"
    assert get_result(result.id).status == ("scheduled" if is_right else "ready")


@pytest.mark.parametrize("act", ACTS)
def test_an_act_takes_no_field_that_it_does_not_know(act: str, root: ApiClient) -> None:
    result = echo.enqueue()
    answer = root.act(path(result, act), {**ACTS[act][1], "resaon": "x"})
    told = problem(answer, 422, "invalid")
    assert told["errors"][0]["pointer"] == "/resaon"
    assert "Did you mean 'reason'?" in told["detail"]
    problem(root.act(path(result, act) + "?force=1", ACTS[act][1]), 400, "invalid")
    assert not Audit.objects.exists()


def test_a_body_of_another_type_is_refused(root: ApiClient) -> None:
    result = echo.enqueue()
    answer = root.post(
        f"/api/v1/{path(result, 'cancel/')}", {"reason": "x"}
    )  # As a form of a page.
    problem(answer, 415, "unsupported_media_type")
    problem(root.act(path(result, "cancel/"), "{"), 400, "parse_error")
    assert get_result(result.id).status == "ready"


def test_an_act_sent_again_is_answered_as_the_first_and_done_once(root: ApiClient) -> None:
    result = task_that_is(TaskStatus.FAILED)
    Task.objects.update(name=tell.name)
    answers = [root.act(path(result, "duplicate/"), Idempotency_Key="k1") for _ in range(2)]
    assert [each.status_code for each in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert answers[0]["Location"] == answers[1]["Location"]
    assert Task.objects.count() == 2
    told = root.act(path(result, "duplicate/"), {"priority": 1}, Idempotency_Key="k1")
    problem(told, 422, "idempotency_key_reused")
