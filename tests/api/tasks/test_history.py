"""Attempts, log lines and reasons of a task."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from taskqueue import control
from taskqueue.api.tasks.history import REDACTIONS, visible_reason
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Lease, Task, TaskLog
from taskqueue.monitoring.why import Reason
from tests.admin.rows import EVIL
from tests.api.conftest import ApiClient
from tests.api.tasks.problems import problem
from tests.api.tasks.test_detail import path
from tests.engine.steps import HOUR, LEASE, claim_one, end, promote
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


def say(task_id: Any, *messages: str, level: int = 20, attempt: int = 1) -> None:
    """Log lines, as a worker writes them."""
    TaskLog.objects.bulk_create(
        TaskLog(
            task_id=task_id, attempt=attempt, logged_at=timezone.now(), level=level,
            logger="shop", message=each,
        )
        for each in messages
    )  # fmt: skip


def test_attempts_tell_what_they_came_to_oldest_first(root: ApiClient) -> None:
    result = noop.using(max_attempts=2).enqueue()
    end(
        claim_one(), OutcomeKind.FAILED, error_class="E", error_message=EVIL, traceback="T", delay=0
    )
    promote()
    claim_one(worker="w2")
    answer = root.look(path(result, "attempts/"))
    assert answer.status_code == 200
    first, second = answer.json()["results"]
    assert (first["attempt"], first["status"], first["worker_name"]) == (1, "failed", "w1")
    assert (first["error_class"], first["error_message"], first["traceback"]) == ("E", EVIL, "T")
    assert (second["attempt"], second["status"], second["finished_at"]) == (2, "running", None)
    again = root.look(path(result, "attempts/"), If_None_Match=answer["ETag"])
    assert again.status_code == 304


def test_many_attempts_come_in_pages(root: ApiClient) -> None:
    result, now = noop.enqueue(), timezone.now()
    Lease.objects.bulk_create(
        Lease(
            task_id=result.id, worker_id="w", attempt=number, status="returned", claimed_at=now,
            finished_at=now, expires_at=now + LEASE,
        )
        for number in range(1, 6)
    )  # fmt: skip
    page, seen = root.look(path(result, "attempts/?limit=2")).json(), []
    while True:
        seen.append([each["attempt"] for each in page["results"]])
        if page["next"] is None:
            break
        page = root.get(page["next"]).json()
    assert seen == [[1, 2], [3, 4], [5]]
    for query in ("limit=0", "limit=101", "after=-1", f"after={2**31}", "page=2"):
        problem(root.look(path(result, f"attempts/?{query}")), 400, "invalid")


def test_lines_are_read_on_from_where_one_was(root: ApiClient) -> None:
    result = noop.enqueue()
    say(result.id, "one", "two", EVIL)
    say(noop.enqueue().id, "of another")
    first = root.look(path(result, "logs/?limit=2")).json()
    assert [each["message"] for each in first["results"]] == ["one", "two"]
    assert (first["has_more"], first["is_complete"], first["status"]) == (True, False, "ready")
    second = root.look(path(result, f"logs/?after={first['after']}")).json()
    assert [each["message"] for each in second["results"]] == [EVIL]
    assert second["has_more"] is False
    third = root.look(path(result, f"logs/?after={second['after']}")).json()
    assert (third["results"], third["after"]) == ([], second["after"])
    Task.objects.filter(id=result.id).update(status="cancelled", finished_at=timezone.now())
    assert root.look(path(result, "logs/")).json()["is_complete"] is True


def test_lines_are_chosen_by_level_and_attempt(root: ApiClient) -> None:
    result = noop.enqueue()
    say(result.id, "quiet", level=10)
    say(result.id, "loud", level=40, attempt=2)
    (line,) = root.look(path(result, "logs/?level=warning")).json()["results"]
    assert (line["message"], line["level"], line["level_name"]) == ("loud", 40, "ERROR")
    (line,) = root.look(path(result, "logs/?attempt=1")).json()["results"]
    assert line["message"] == "quiet"
    for query in ("level=loud", "attempt=-1", "limit=1001", "wait=61", "wait=-1", "after=x"):
        problem(root.look(path(result, f"logs/?{query}")), 400, "invalid")


def test_reasons_tell_what_keeps_it(root: ApiClient) -> None:
    result = noop.using(run_after=HOUR).enqueue()
    told = root.look(path(result, "why/")).json()
    assert (told["id"], told["status"]) == (str(result.id), "scheduled")
    assert "not_due" in [each["code"] for each in told["reasons"]]
    reason = told["reasons"][0]
    assert {*reason} == {"code", "message", "subject", "moment", "clears_at", "details"}
    assert reason["clears_at"] == reason["moment"] is not None
    assert "UTC" in told["reasons"][0]["message"]


def reasons(client: ApiClient, result: Any) -> dict[str, dict[str, Any]]:
    """By code."""
    answer = client.look(path(result, "why/"))
    assert answer.status_code == 200
    return {each["code"]: each for each in answer.json()["reasons"]}


def test_reasons_tell_no_more_of_an_attempt_than_its_list_does(member: Any) -> None:
    result = noop.enqueue()
    claim_one(worker="w-secret")
    Lease.objects.update(wedged_at=timezone.now())
    control.request_stop(result.id, by="alice", reason="payroll")
    viewer = member("view_task")
    seen = reasons(viewer, result)
    assert seen["claimed"] == {
        "code": "claimed", "message": "A worker has claimed it.", "subject": "", "moment": None,
        "clears_at": None, "details": {},
    }  # fmt: skip
    for secret in ("w-secret", "alice", "payroll"):
        assert secret not in str(seen)
    known = reasons(member("view_task", "view_lease"), result)
    assert list(known) == list(seen)
    assert (known["claimed"]["subject"], known["stop_requested"]["subject"]) == (
        "w-secret", "alice",
    )  # fmt: skip
    assert known["worker_lost"]["subject"] == ""
    assert reasons(member("view_task", "view_lease", "view_worker"), result)["worker_lost"][
        "subject"
    ]


def test_reasons_tell_of_a_pause_to_who_may_view_queues(member: Any) -> None:
    result = noop.using(queue_name="mail").enqueue()
    control.pause("mail", until=60, by="alice", reason="payroll")
    told = reasons(member("view_task"), result)["queue_paused"]
    assert told["message"] == "The queue mail is paused."
    assert (told["subject"], told["moment"], told["details"]) == ("mail", None, {})
    assert told["clears_at"] is None
    told = reasons(member("view_task", "view_queue"), result)["queue_paused"]
    assert told["clears_at"] == told["moment"] is not None
    assert "by alice: payroll" in told["message"]


def test_reasons_tell_who_cancelled_to_who_may_view_the_audit(member: Any) -> None:
    result = noop.enqueue()
    control.cancel(result.id, by="alice")
    told = reasons(member("view_task", "view_lease"), result)["cancelled"]
    assert (told["subject"], told["message"][:20]) == ("", "It was cancelled at ")
    told = reasons(member("view_task", "view_lease", "view_audit"), result)["cancelled"]
    assert told["subject"] == "alice"


@pytest.mark.parametrize("code", REDACTIONS)
def test_each_reason_has_a_sentence_for_who_may_know_no_more(code: str) -> None:
    reason = Reason(code=code, subject="mail", moment=timezone.now(), details={"slots": 7})
    seen = visible_reason(reason, AnonymousUser())
    assert seen["code"] == code
    assert seen["message"].endswith(".")
    assert "7" not in str(seen["details"])


@pytest.mark.parametrize(("act", "missing"), [("attempts/", "lease"), ("logs/", "tasklog")])
def test_each_part_takes_its_own_permission(act: str, missing: str, member: Any) -> None:
    result = noop.enqueue()
    problem(member("view_task").look(path(result, act)), 403, "permission_denied")
    assert member("view_task", f"view_{missing}").look(path(result, act)).status_code == 200
