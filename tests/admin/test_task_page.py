"""The page of a task: what happened, how it stands, in what order; to those who may see it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from taskqueue import control, schedules
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.core.states import TaskStatus
from taskqueue.models import Audit, Lease, Task, TaskLog, Worker
from taskqueue.rules import Every
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET, Rows
from tests.admin.test_admin import read, url
from tests.engine.steps import claim_one, end, make_due, promote
from tests.engine.test_control import task_that_is
from tests.sample.tasks import add, echo, log_in, noop

pytestmark = pytest.mark.django_db
MOST_QUERIES = 15
REFRESH = {"X-Requested-With": "taskqueue-refresh"}


def page_of(client: Any, task: Any) -> Any:
    """The answer, with its context."""
    answer = client.get(url("task", "change", task.id))
    assert answer.status_code == 200
    return answer


def titles(client: Any, task: Any) -> list[str]:
    """Return the titles of the timeline, in its order."""
    return [title for _look, title, _event in page_of(client, task).context["steps"]]


def test_a_long_history_is_shown_in_order(log_in_as: LogIn) -> None:
    task, client = add.using(max_attempts=9).enqueue(1), log_in_as("superuser")
    end(
        claim_one(), OutcomeKind.FAILED, error_class="builtins.ValueError", error_message="too late"
    )
    control.run_now(task.id, by="anna")
    end(claim_one(), OutcomeKind.LOST, error_class="taskqueue.exceptions.AttemptLost")
    make_due(task)
    promote()
    end(claim_one(), OutcomeKind.SNOOZED, delay=0)
    promote()
    claimed = claim_one()
    control.request_stop(task.id, by="bob", reason="of no use")
    end(claimed, OutcomeKind.STOPPED)
    control.retry(task.id, by="anna", reason="of use after all")
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value="3")
    told = titles(client, task)
    expected = (
        "Enqueued", "Attempt 1 started", "Attempt 1 failed", "Made due now", "Attempt 2 was lost",
        "Attempt 3 was returned", "Asked to stop", "Attempt 4 was stopped", "Retried",
        "Attempt 5 succeeded", "Succeeded",
    )  # fmt: skip
    places = [next(i for i, each in enumerate(told) if each.startswith(one)) for one in expected]
    assert places == sorted(places)
    page = page_of(client, task).content.decode()
    for part in ("too late", "anna", "of use after all", "bob", "of no use", "taskqueue-bar"):
        assert part in page


@pytest.mark.parametrize(
    ("status", "last"),
    [
        (TaskStatus.READY, "Waiting"), (TaskStatus.SCHEDULED, "Waiting"),
        (TaskStatus.RUNNING, "Running"), (TaskStatus.FAILED, "Failed"),
        (TaskStatus.BLOCKED, "Waiting"),
    ],
)  # fmt: skip
def test_the_last_step_is_what_it_does_now(status: TaskStatus, last: str, log_in_as: LogIn) -> None:
    assert titles(log_in_as("superuser"), task_that_is(status))[-1].startswith(last)


def test_the_bar_shows_each_part_as_long_as_it_took(log_in_as: LogIn) -> None:
    task, now = noop.enqueue(), timezone.now()
    end(claim_one(), OutcomeKind.SUCCEEDED)
    Task.objects.update(enqueued_at=now - timedelta(seconds=100), finished_at=now)
    Lease.objects.update(claimed_at=now - timedelta(seconds=75), finished_at=now)
    page = page_of(log_in_as("superuser"), task).content.decode()
    parts = re.findall(r'taskqueue-part--(\w+)" x="([\d.]+)" y="0" width="([\d.]+)"', page)
    assert parts == [("wait", "0.0", "250.0"), ("succeeded", "250.0", "750.0")]
    assert "waited 25 s" in page
    assert "ran 75 s" in page


def test_a_task_of_several_workers_has_a_row_for_each_attempt(log_in_as: LogIn) -> None:
    task = noop.using(workers=2).enqueue()
    now = timezone.now()
    for number, name in enumerate(("w1", "w2"), start=1):
        Lease.objects.create(
            task_id=task.id, worker_id=name, attempt=number, claimed_at=now, is_shared=True,
            expires_at=now + timedelta(hours=1),
        )  # fmt: skip
    Task.objects.update(status="running", attempt=2, running_leases=2, open_slots=0)
    page = page_of(log_in_as("superuser"), task).content.decode()
    assert page.count("taskqueue-part--running") == 2
    assert "0 of 2 done, 2 running, 0 open" in page


def test_a_stop_request_is_shown_with_its_author_until_the_task_stops(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.RUNNING), log_in_as("superuser")
    Lease.objects.update(progress=42.5, progress_message="row 4", progress_detail={"bad": "<2"})
    control.request_stop(task.id, by="anna", reason="too long")
    page = page_of(client, task).content.decode()
    assert "Attempt 1 was asked to stop by anna (reason: too long)." in page
    assert 'value="42.5"' in page
    assert "row 4" in page
    assert "{&quot;bad&quot;: &quot;&lt;2&quot;}" in page


def test_why_it_waits_stands_on_the_page(log_in_as: LogIn) -> None:
    task, client = noop.using(run_after=600).enqueue(), log_in_as("superuser")
    control.pause("default")
    page = page_of(client, task).content.decode()
    for part in ("It is not due until", "default is paused.", "No running worker serves the queue"):
        assert part in page


def test_who_holds_what_runs_stands_on_the_page_in_its_language(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.RUNNING), log_in_as("superuser")
    page = page_of(client, task).content.decode()
    assert re.search(r"The worker w1 (claimed it at|has been running it since) <time", page)
    assert "it is renewed" in page
    with override_settings(LANGUAGE_CODE="zh-hans"):
        assert "租约若不续期" in page_of(client, task).content.decode()


def test_kin_are_linked_and_those_that_are_gone_are_named(log_in_as: LogIn) -> None:
    old, client = add.enqueue(1), log_in_as("superuser")
    old.cancel()
    new = old.retry(args=[2])
    copy = control.duplicate(old.id)
    page = page_of(client, old).content.decode()
    for other in (new.id, copy):
        assert url("task", "change", other) in page
    for other in (new, Task.objects.get(id=copy)):
        assert url("task", "change", old.id) in page_of(client, other).content.decode()
    control.delete(old.id)
    page = page_of(client, new).content.decode()
    assert url("task", "change", old.id) not in page
    assert f"{old.id} " in page


def test_a_task_of_a_schedule_leads_to_it(log_in_as: LogIn) -> None:
    schedule = schedules.create("hourly", task=noop.name, rule=Every(3600))
    run = schedules.run_now("hourly")
    page = read(log_in_as("superuser"), url("task", "change", run.task_id))
    assert url("schedule", "change", schedule.pk) in page
    assert "Nominal time" in page


def test_log_lines_can_be_those_of_one_attempt(rows: Rows, log_in_as: LogIn) -> None:
    now = timezone.now()
    TaskLog.objects.create(task=rows.task, attempt=2, logged_at=now, level=20, message="second one")
    client = log_in_as("superuser")
    address = url("task", "change", rows.task.pk)
    assert "second one" in read(client, address)
    assert "second one" in read(client, f"{address}?attempt=2")
    for other in ("1", "3"):
        assert "second one" not in read(client, f"{address}?attempt={other}")
    for odd in ("x", "-1", "9" * 30, "%00", ""):
        assert "second one" in read(client, f"{address}?attempt={odd}")


def test_log_lines_are_shown_from_a_level_on_and_downloaded(rows: Rows, log_in_as: LogIn) -> None:
    now, client = timezone.now(), log_in_as("superuser")
    for level, message in ((20, "all is well"), (40, "all is lost")):
        TaskLog.objects.create(
            task=rows.task, attempt=2, logged_at=now, level=level, message=message, logger="shop"
        )
    address = url("task", "change", rows.task.pk)
    page = read(client, f"{address}?level=30&attempt=2")
    assert "all is lost" in page
    assert "all is well" not in page
    assert "all is well" in read(client, f"{address}?level=7")
    answer = client.get(url("task", "log", rows.task.pk), {"level": "30", "attempt": "2"})
    text = b"".join(answer).decode()
    assert text.endswith(" 2 ERROR shop all is lost\n")
    assert text.count("\n") == 1
    assert "attachment" in answer["Content-Disposition"]


def test_a_retry_with_other_arguments_shows_the_differences(log_in_as: LogIn) -> None:
    first = echo.enqueue({"a": [1, 2], "b": "x"})
    again = echo.enqueue({"a": [1, 3], "c": "y"})
    Task.objects.filter(pk=again.id).update(retry_of_id=first.id)
    response = log_in_as("superuser").get(url("task", "change", again.id))
    assert [tuple(each) for each in response.context["differences"]] == [
        ("0.a.1", "2", "3"), ("0.b", '"x"', ""), ("0.c", "", '"y"'),
    ]  # fmt: skip


def test_a_difference_of_secrets_is_not_shown(log_in_as: LogIn) -> None:
    first, again = (log_in.enqueue(user="bob", password=f"{SECRET}{n}") for n in "12")
    Task.objects.filter(pk=again.id).update(retry_of_id=first.id)
    response = log_in_as("superuser").get(url("task", "change", again.id))
    assert response.context["differences"] == []
    assert SECRET not in response.content.decode()


def test_long_values_are_folded(log_in_as: LogIn) -> None:
    short, long = echo.enqueue("a"), echo.enqueue(["a"] * 500)
    client = log_in_as("superuser")
    assert "characters</summary>" not in page_of(client, short).content.decode()
    assert "characters</summary>" in page_of(client, long).content.decode()


# Who sees what


def test_each_part_needs_the_permission_to_view_its_rows(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("viewer", "view_task")
    page = page_of(client, rows.task).content.decode()
    for part in ("taskqueue-leases", "taskqueue-lines", "taskqueue-audit", "worker-1", "ann<"):
        assert part not in page
    assert 'name="verb"' not in page
    assert "csrfmiddlewaretoken" not in page.partition('id="content"')[2]


def test_text_of_any_field_is_shown_as_text(rows: Rows, log_in_as: LogIn) -> None:
    Worker.objects.create(
        name=EVIL, host=EVIL, pid=1, started_at=timezone.now(), seen_at=timezone.now()
    )
    Lease.objects.update(
        worker_id=EVIL, error_class=EVIL, stop_requested_by=EVIL, stop_reason=EVIL,
        stop_requested_at=timezone.now(),
    )  # fmt: skip
    TaskLog.objects.update(logger=EVIL)
    Audit.objects.update(actor=EVIL, verb=EVIL[:30], detail=EVIL)
    client = log_in_as("superuser")
    states: list[dict[str, Any]] = [
        {"status": "failed", "error_class": EVIL, "error_message": EVIL},
        {"status": "succeeded", "return_value": {EVIL: [EVIL]}},
        {"status": "ready", "finished_at": None, "worker_names": [EVIL], "route": 1},
        {"status": "scheduled", "finished_at": None, "parked_at": timezone.now()},
    ]
    for columns in states:
        Task.objects.filter(pk=rows.task.pk).update(
            **{
                "name": EVIL, "queue_name": EVIL, "kwargs": {EVIL: EVIL}, "unique_key": EVIL,
                "metadata": {EVIL: EVIL}, "options": {"schedule": EVIL}, "schedule_id": 1,
                "finished_at": timezone.now(), **columns,
            }
        )  # fmt: skip
        page = page_of(client, Task.objects.get(pk=rows.task.pk)).content.decode()
        assert EVIL not in page
        assert EVIL[:30] not in page
        assert "gotcha" in page
    Lease.objects.update(status="running", finished_at=None)
    Task.objects.filter(pk=rows.task.pk).update(status="running", finished_at=None)
    assert EVIL not in page_of(client, rows.task).content.decode()


def test_nothing_of_a_secret_is_on_the_page_or_its_forms(log_in_as: LogIn) -> None:
    task, client = log_in.enqueue("bob", password=SECRET), log_in_as("superuser")
    end(claim_one(), OutcomeKind.FAILED)
    copy = control.duplicate(task.id)
    for address in (
        url("task", "change", task.id), url("task", "edit", task.id, "retry_with"),
        url("task", "delete", task.id), url("task", "change", copy),
        url("task", "edit", copy, "update"), url("task", "history", task.id),
    ):  # fmt: skip
        page = read(client, address)
        assert SECRET not in page, address


def test_pages_hold_no_script_or_style_of_their_own(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    waiting = noop.enqueue()
    for address in (
        url("task", "change", rows.task.pk), url("task", "change", waiting.id),
        url("task", "edit", waiting.id, "update"), url("task", "add"),
        f"{url('task', 'add')}?name={add.name}",
    ):  # fmt: skip
        page = read(client, address).partition('id="content"')[2].partition("<footer")[0]
        assert not re.search(r"<script(?! src)|<style|\sstyle=|\son\w+=|javascript:", page)


# What it costs, and how it is kept up to date


@pytest.mark.parametrize("role", ["viewer", "superuser"])
def test_the_page_costs_few_queries(
    role: str, rows: Rows, log_in_as: LogIn, django_assert_max_num_queries: Any
) -> None:
    now = timezone.now()
    Lease.objects.bulk_create(
        Lease(task=rows.task, worker_id=f"w{n % 7}", attempt=n, claimed_at=now, expires_at=now,
              finished_at=now, status="failed")
        for n in range(2, 80)
    )  # fmt: skip
    for _ in range(5):
        control.duplicate(rows.task.pk)
    control.retry_with(rows.task.pk)
    waiting = noop.using(run_after=60).enqueue()
    for _ in range(3):
        control.update(waiting.id, {"priority": 1})
        control.duplicate(waiting.id)
    client = log_in_as(role)
    for task in (rows.task, waiting, Task.objects.latest("id")):
        with django_assert_max_num_queries(MOST_QUERIES):
            page_of(client, task)


def test_a_refresh_fetches_only_parts_and_only_if_they_changed(log_in_as: LogIn) -> None:
    task, client = task_that_is(TaskStatus.RUNNING), log_in_as("superuser")
    address = url("task", "change", task.id)
    whole = read(client, address)
    assert "data-refresh-root" in whole
    part = client.get(address, headers=REFRESH)
    assert part.status_code == 200
    assert "<html" not in part.content.decode()
    assert "csrfmiddlewaretoken" not in part.content.decode()
    names = re.findall(r'data-refresh="([\w-]+)"', part.content.decode())
    assert len(set(names)) == len(names)
    assert set(names) == set(re.findall(r'data-refresh="([\w-]+)"', whole))
    Task.objects.update(status="ready", finished_at=None)
    Lease.objects.all().delete()
    Task.objects.update(enqueued_at=timezone.now() - timedelta(days=9))
    first = client.get(address, headers=REFRESH)
    known = {**REFRESH, "If-None-Match": first["ETag"]}
    assert client.get(address, headers=known).status_code == 304
    Task.objects.update(priority=9)
    assert client.get(address, headers=known).status_code == 200


def test_an_ended_task_is_not_refreshed(log_in_as: LogIn) -> None:
    page = page_of(log_in_as("superuser"), task_that_is(TaskStatus.FAILED)).content.decode()
    assert "data-refresh-root" not in page
    assert "refresh.js" not in page


def test_the_page_says_what_redacts_an_argument(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    told = "declares this argument as sensitive. Nobody can view its value"
    assert told in page_of(client, log_in.enqueue("ann", password=SECRET)).content.decode()
    assert told not in page_of(client, add.enqueue(1)).content.decode()
