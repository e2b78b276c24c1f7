"""One task over REST: all there is to say, changes of its terms, its deletion."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue import control
from taskqueue.api.tasks.detail import TaskView
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.models import Audit, Lease, Task
from taskqueue.results import get_result
from tests.admin.rows import EVIL, SECRET, make_rows
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.engine.steps import HOUR, claim_one, end, promote
from tests.engine.test_control import task_that_is
from tests.sample.rest_tasks import sign_in, tell
from tests.sample.tasks import echo, noop

pytestmark = pytest.mark.django_db


def path(task: Any, act: str = "") -> str:
    """Where the task, or an act on it, is."""
    return f"tasks/{task.id}/{act}"


def test_all_there_is_to_say_of_a_failed_attempt_and_a_retry(root: ApiClient) -> None:
    result = noop.using(max_attempts=2, metadata={"a": 1}).enqueue()
    end(
        claim_one(), OutcomeKind.FAILED, error_class="E", error_message=EVIL, traceback="T", delay=0
    )
    promote()
    running = claim_one(worker="w2")
    Lease.objects.filter(id=running.lease_id).update(
        progress=50, progress_message="half", progress_detail=[1]
    )
    told = root.look(path(result)).json()
    assert (told["status"], told["is_finished"], told["attempts"]) == ("running", False, 2)
    assert (told["failures"], told["max_attempts"], told["metadata"]) == (1, 2, {"a": 1})
    (failed,) = told["errors"]
    assert (failed["attempt"], failed["exception_class_path"], failed["message"]) == (1, "E", EVIL)
    (held,) = told["running"]
    assert (held["attempt"], held["worker_name"], held["progress"]) == (2, "w2", 50)
    assert held["progress_detail"] == [1]
    assert told["can"] == ["update", "cancel", "stop"]
    end(running, OutcomeKind.SUCCEEDED, return_value='{"x": [1]}')
    told = root.look(path(result)).json()
    assert (told["return_value"], told["is_finished"], told["running"]) == ({"x": [1]}, True, [])


def test_who_cancelled_a_task_or_stops_it_is_told_with_the_reason(
    root: ApiClient, member: Any
) -> None:
    waiting, running = noop.enqueue(), noop.enqueue()
    waiting.cancel("a mistake", by="ann")
    claimed = claim_one()
    running.cancel("too long", by="bob")
    for result, by, reason in ((waiting, "ann", "a mistake"), (running, "bob", "too long")):
        told = root.look(path(result)).json()
        assert told["cancellation"] == {"by": by, "reason": reason}
    end(claimed, OutcomeKind.STOPPED, error_message="too long")
    (error,) = root.look(path(running)).json()["errors"]
    assert error["exception_class_path"] == "taskqueue.exceptions.Stopped"
    assert (error["message"], error["status"]) == ("too long", "stopped")
    for permissions in (["view_task"], ["view_task", "view_lease"], ["view_task", "view_audit"]):
        assert member(*permissions).look(path(running)).json()["cancellation"] is None
    assert root.look(path(noop.enqueue())).json()["cancellation"] is None


def test_secrets_and_attempts_are_for_who_may_see_them(member: Any) -> None:
    rows = make_rows()
    told = member("view_task").look(path(rows.task)).json()
    assert (told["args"], told["errors"], told["running"]) == ([EVIL, "[redacted]"], None, None)
    assert told["can"] == []
    assert SECRET not in str(told)
    Task.objects.filter(id=rows.task.id).update(name="shop.gone")
    assert member("view_task").look(path(rows.task)).json()["args"] is None
    told = member("view_task", "view_arguments", "view_lease").look(path(rows.task)).json()
    assert (told["args"], told["errors"][0]["message"]) == ([EVIL, SECRET], EVIL)


def test_allowed_verbs_depend_on_the_user_and_the_status(member: Any) -> None:
    operator = member("view_task", "operate")
    seen = {
        status: operator.look(path(task_that_is(status))).json()["can"]
        for status in (TaskStatus.RUNNING, TaskStatus.FAILED, TaskStatus.READY)
    }
    assert seen == {
        TaskStatus.READY: ["reschedule", "update", "cancel"],
        TaskStatus.RUNNING: ["update"],
        TaskStatus.FAILED: ["retry"],
    }


@pytest.mark.parametrize("act", ["", "attempts/", "logs/", "why/"])
def test_an_unknown_task_answers_404(act: str, root: ApiClient) -> None:
    for name in (uuid4(), "no-id", "%00", "%F0%9F%98%80"):
        problem(root.look(f"tasks/{name}/{act}"), 404, "task_not_found")


def test_a_task_costs_few_queries(root: ApiClient) -> None:
    rows = make_rows()
    root.look(path(rows.task))
    with CaptureQueriesContext(connection) as asked:
        root.look(path(rows.task))
    assert len(asked) <= 6


def test_unchanged_content_is_not_sent_again(root: ApiClient) -> None:
    result = echo.enqueue()
    first = root.look(path(result))
    answer = root.look(path(result), If_None_Match=first["ETag"])
    assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", first["ETag"])
    control.update(result.id, {"priority": 3})
    assert root.look(path(result), If_None_Match=first["ETag"]).status_code == 200


# Changes


def test_terms_are_changed_and_audited(root: ApiClient) -> None:
    result = echo.enqueue()
    terms = {
        "priority": 7, "queue_name": "mail", "max_attempts": 3, "timeout": 1.5,
        "backoff": {"policy": "linear", "base": 2}, "retention": 60, "worker_names": ["w1"],
        "crash_delay": 0, "max_crashes": 9, "lease_duration": 40, "ping_interval": 4,
    }  # fmt: skip
    answer = root.ask("PATCH", path(result), {**terms, "reason": "in a hurry"})
    assert answer.status_code == 200, answer.content
    told = answer.json()
    assert {name: told[name] for name in terms if name != "backoff"} == {
        name: value for name, value in terms.items() if name != "backoff"
    }
    assert told["backoff"]["policy"] == "linear"
    assert root.look(path(result))["ETag"] == answer["ETag"]
    audit = Audit.objects.get()
    assert (audit.actor, audit.verb, audit.reason) == ("root", "update", "in a hurry")
    assert root.ask("PATCH", path(result), {"timeout": None}).json()["timeout"] is None


@pytest.mark.parametrize(
    ("terms", "pointer"),
    [
        ({}, ""),
        ({"reason": "none"}, ""),
        ({"priority": 101}, "/priority"),
        ({"priority": None}, "/priority"),
        ({"queue_name": "a b"}, "/queue_name"),
        ({"args": 1}, "/args"),
        ({"status": "succeeded"}, "/status"),
        ({"unique_key": "k"}, "/unique_key"),
        ({"lease_duration": 10, "ping_interval": 9}, None),
    ],
)
def test_terms_that_cannot_be_are_refused(
    terms: dict[str, Any], pointer: str | None, root: ApiClient
) -> None:
    result = echo.enqueue()
    before = Task.objects.values().get()
    answer = root.ask("PATCH", path(result), terms)
    assert answer.status_code == 422
    if pointer is not None:
        assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]
    assert Task.objects.values().get() == before
    assert not Audit.objects.exists()


def test_an_outdated_etag_does_not_overwrite_a_change(root: ApiClient) -> None:
    result = echo.enqueue()
    seen = root.look(path(result))["ETag"]
    answer = root.ask("PATCH", path(result), {"priority": 1}, If_Match=seen)
    assert answer.status_code == 200
    refused = root.ask("PATCH", path(result), {"priority": 2}, If_Match=seen)
    problem(refused, 412, "precondition_failed")
    assert Task.objects.get().priority == 1
    several = f'"nonsense", {answer["ETag"]}'
    answer = root.ask("PATCH", path(result), {"priority": 2}, If_Match=several)
    assert answer.status_code == 200
    assert root.ask("PATCH", path(result), {"priority": 3}, If_Match="*").status_code == 200
    missing = root.ask("PATCH", f"tasks/{uuid4()}/", {"priority": 2}, If_Match="*")
    problem(missing, 404, "task_not_found")


def test_how_far_a_body_is_hinders_nobody_and_its_start_does(root: ApiClient) -> None:
    result = echo.enqueue()
    ready = root.look(path(result))["ETag"]
    claimed = claim_one()
    running = root.look(path(result))["ETag"]
    Lease.objects.filter(id=claimed.lease_id).update(progress=5)
    problem(root.act(path(result, "cancel/"), If_Match=ready), 412, "precondition_failed")
    assert root.act(path(result, "cancel/"), If_Match=running).status_code == 202


def test_other_arguments_at_the_same_time_are_a_change_too(root: ApiClient) -> None:
    due = timezone.now() + HOUR
    first = tell.using(unique_key="k", run_after=due, on_duplicate="replace")
    result = first.enqueue("seen")
    seen = root.look(path(result))["ETag"]
    assert first.enqueue("another").updated
    problem(root.act(path(result, "run-now/"), If_Match=seen), 412, "precondition_failed")
    assert root.look(path(result)).json()["run_after"] == due.isoformat().replace("+00:00", "Z")


def test_secrets_cannot_be_tried_out_by_an_etag(settings: Any) -> None:
    sign_in.enqueue("ann", "1234")
    task = Task.objects.get()
    part = TaskView().part(task)
    assert TaskView().part(Task.objects.get()) == part
    settings.SECRET_KEY = "another"
    assert TaskView().part(task) != part


def test_an_etag_that_was_made_weak_on_its_way_will_do(root: ApiClient, settings: Any) -> None:
    settings.MIDDLEWARE = ["django.middleware.gzip.GZipMiddleware", *settings.MIDDLEWARE]
    result = echo.enqueue()
    answer = root.look(path(result), Accept_Encoding="gzip")
    assert (answer["Content-Encoding"], answer["ETag"][:3]) == ("gzip", 'W/"')
    change = root.ask("PATCH", path(result), {"priority": 1}, If_Match=answer["ETag"])
    assert change.status_code == 200
    again = root.ask("PATCH", path(result), {"priority": 2}, If_Match=answer["ETag"])
    problem(again, 412, "precondition_failed")
    known = root.look(path(result), Accept_Encoding="gzip")["ETag"]
    assert root.look(path(result), If_None_Match=known).status_code == 304


def test_a_finished_task_has_no_terms(root: ApiClient) -> None:
    result = task_that_is(TaskStatus.FAILED)
    answer = root.ask("PATCH", path(result), {"priority": 1})
    problem(answer, 409, "transition_refused")


@pytest.mark.parametrize("status", sorted(TaskStatus))
def test_only_a_finished_task_is_deleted(status: TaskStatus, root: ApiClient) -> None:
    result = task_that_is(status)
    answer = root.ask("DELETE", path(result) + "?reason=old")
    if status in FINISHED:
        assert (answer.status_code, answer.content) == (204, b"")
        problem(root.look(path(result)), 404, "task_not_found")
        assert Audit.objects.get().reason == "old"
    else:
        problem(answer, 409, "transition_refused")
        assert get_result(result.id).status == status


def test_a_deletion_sent_again_is_answered_as_the_first(root: ApiClient) -> None:
    result = task_that_is(TaskStatus.FAILED)
    for _ in range(2):
        answer = root.ask("DELETE", path(result), Idempotency_Key="bye")
        assert (answer.status_code, answer.content) == (204, b"")
    problem(root.ask("DELETE", path(result)), 404, "task_not_found")
    assert Audit.objects.count() == 1
