"""Operations in the admin: the question, the start, the page with its progress, the end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taskqueue.control import TaskFilter, cancel_operation, get_operation, start_operation
from taskqueue.engine.operations import serving
from taskqueue.engine.operations.asking import which_of
from taskqueue.models import Audit, Operation, Task, Worker
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL
from tests.admin.test_admin import read, url
from tests.engine.operation_steps import fail, figures, fill, let_begin, serve_all, statuses
from tests.engine.steps import claim
from tests.sample import tasks as sample
from tests.workflows.steps_of import finish

pytestmark = pytest.mark.django_db

START = "/admin/taskqueue/operation/start/"
FAILED = TaskFilter(statuses=["failed"])
ALL = ("view_task", "view_operation", "operate", "stop", "purge")
REFRESH = {"X-Requested-With": "taskqueue-refresh"}


def page_of(operation: Operation) -> str:
    return url("operation", "change", operation.pk)


def confirm(client: Client, verb: str, **given: Any) -> Any:
    """Confirm it, and let the seconds pass in which it can be undone."""
    response = client.post(START, {"verb": verb, "confirmed": "yes", **given})
    let_begin()
    return response


def test_the_question_says_which_tasks_how_many_and_shows_some(log_in_as: LogIn) -> None:
    fail(12)
    fill(3)
    client = log_in_as("staff", *ALL)
    response = client.get(START, {"verb": "retry", "q": "status:failed"})
    page = response.content.decode()
    assert response.status_code == 200
    assert "status:failed" in page
    assert "12 tasks" in page
    assert "Retry: 12 tasks" in page
    assert page.count('data-label="Status"') == 10
    assert not Operation.objects.exists()
    assert not Audit.objects.exists()


def test_the_address_is_the_one_that_other_pages_link_to() -> None:
    assert reverse("admin:taskqueue_operation_start") == START


def test_yes_begins_it_and_leads_to_its_page(log_in_as: LogIn) -> None:
    fail(5)
    client = log_in_as("staff", *ALL)
    response = confirm(client, "retry", q="status:failed", reason="mended")
    operation = Operation.objects.get()
    assert response.url == page_of(operation)
    assert (operation.query, operation.requested_by, operation.reason) == (
        "status:failed", "user", "mended",
    )  # fmt: skip
    assert LogEntry.objects.get().object_id == str(operation.pk)
    assert "waiting" in read(client, page_of(operation))
    serve_all()
    assert statuses() == {"ready": 5}
    page = read(client, page_of(operation))
    assert "finished" in page
    assert 'value="100"' in page
    assert Audit.objects.filter(verb="retry", actor="user", reason="mended").count() == 5


def test_users_who_may_not_view_operations_are_redirected_to_the_tasks(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task", "operate")
    response = confirm(client, "retry", q="status:failed")
    assert response.url == url("task", "changelist")
    assert Operation.objects.exists()


def test_tasks_that_were_ticked_are_meant_and_no_others(log_in_as: LogIn) -> None:
    failed, ready = fail(4), fill(2)
    client = log_in_as("staff", *ALL)
    ids = [str(each) for each in [*failed[:2], *ready]]
    page = client.post(START, {"verb": "retry", "ids": ids}).content.decode()
    assert "2 tasks allow this action now" in page
    assert "2 other tasks have a status that does not allow this action" in page
    assert page.count('name="ids"') == 4
    confirm(client, "retry", ids=ids)
    serve_all()
    assert figures(Operation.objects.get()) == ("finished", 4, 2)
    assert "4 chosen one by one" in read(client, page_of(Operation.objects.get()))


def test_ids_in_one_parameter_of_an_address_are_read_too(log_in_as: LogIn) -> None:
    ids = fail(2)
    page = log_in_as("staff", *ALL).get(
        START, {"verb": "retry", "ids": ",".join(map(str, ids)) + ",nonsense"}
    )
    assert page.content.decode().count('name="ids"') == 2


@pytest.mark.parametrize(
    "given",
    [
        {"ids": "nonsense"}, {"ids": ""}, {"ids": "\0"}, {"ids": "", "everything": "1"},
        {}, {"q": ""}, {"q": "  "}, {"everything": ""}, {"q": "", "everything": "0"},
    ],
)  # fmt: skip
def test_who_chooses_nothing_means_nothing_rather_than_all(
    log_in_as: LogIn, given: dict[str, str]
) -> None:
    fail(2)
    client = log_in_as("staff", *ALL)
    for response in (
        client.get(START, {"verb": "delete", **given}),
        client.post(START, {"verb": "delete", **given}),
        confirm(client, "delete", **given),
    ):
        page = response.content.decode()
        assert "No tasks are chosen" in page
        assert 'name="confirmed"' not in page
    assert not Operation.objects.exists()
    assert not LogEntry.objects.exists()


def test_everything_is_meant_where_that_is_said(log_in_as: LogIn) -> None:
    fail(2)
    client = log_in_as("staff", *ALL)
    page = client.get(START, {"verb": "delete", "everything": "1"}).content.decode()
    assert "all tasks" in page
    assert 'name="everything" value="1"' in page
    confirm(client, "delete", q="", everything="1")
    serve_all()
    assert statuses() == {}


def test_too_many_ticked_tasks_are_refused(log_in_as: LogIn) -> None:
    ids = ",".join(str(uuid4()) for _ in range(1001))
    page = log_in_as("staff", *ALL).post(START, {"verb": "retry", "ids": ids})
    assert "At most 1000" in page.content.decode()


def test_a_search_that_is_none_is_said_and_cannot_be_confirmed(log_in_as: LogIn) -> None:
    client = log_in_as("staff", *ALL)
    for query in ("stutus:failed", "status:faild", 'name:"', "a\0b"):
        for response in (
            client.get(START, {"verb": "retry", "q": query}),
            confirm(client, "retry", q=query),
        ):
            assert response.status_code == 200
            assert 'name="confirmed"' not in response.content.decode(), query
    assert not Operation.objects.exists()


def test_the_question_says_that_tasks_of_workflows_are_left_out(log_in_as: LogIn) -> None:
    finish(sample.fail.s().enqueue())
    client = log_in_as("staff", *ALL)
    said = "Tasks that belong to a workflow are not included"
    page = read(client, START + "?verb=retry&q=status:failed")
    assert "No matching task allows this action." in page
    assert said in page
    assert said not in read(client, START + "?verb=cancel&q=status:ready")


def test_where_nothing_fits_there_is_nothing_to_confirm(log_in_as: LogIn) -> None:
    page = read(log_in_as("staff", *ALL), START + "?verb=retry&q=status:failed")
    assert "No matching task allows this action." in page
    assert 'name="confirmed"' not in page


def test_a_new_time_and_new_terms_are_asked_for(log_in_as: LogIn) -> None:
    fill(2, run_after=timedelta(hours=1))
    client = log_in_as("staff", *ALL)
    for verb, wrong in (
        ("reschedule", [{}, {"run_after": "in -1 minutes"}, {"run_after": "soon"}]),
        ("update", [{}, {"priority": "1000"}, {"queue_name": "x" * 101}, {"priority": "a"}]),
        ("update", [{"queue_name": "a\0b"}]),
    ):
        for given in wrong:
            response = confirm(client, verb, q="status:scheduled", **given)
            assert response.status_code == 200, (verb, given)
            assert "errorlist" in response.content.decode(), (verb, given)
    assert not Operation.objects.exists()
    page = read(client, START + "?verb=reschedule&q=status:scheduled")
    assert "in 5 minutes. In the time zone of the admin.</span>" in page
    confirm(client, "update", q="status:scheduled", priority="7", queue_name="mail")
    confirm(client, "reschedule", q="status:scheduled", run_after="2030-01-02T03:04")
    serve_all()
    task = Task.objects.all()[0]
    assert (task.priority, task.queue_name) == (7, "mail")
    assert task.run_after.isoformat() == "2030-01-02T03:04:00+00:00"
    confirm(client, "reschedule", q="status:scheduled", run_after="in 0 minutes")
    serve_all()
    assert statuses() == {"ready": 2}
    for operation in Operation.objects.all():
        read(client, page_of(operation))


@pytest.mark.parametrize("field", ["reason", "q"])
def test_input_of_people_is_shown_as_text(log_in_as: LogIn, field: str) -> None:
    fill(1)
    client = log_in_as("superuser")
    given = {"everything": "1", "priority": "1", field: f'"{EVIL}"' if field == "q" else EVIL}
    pages = [client.get(START, {"verb": "update", **given}).content.decode()]
    confirm(client, "update", **given)
    operation = Operation.objects.get()
    Operation.objects.update(error=EVIL)
    pages += [read(client, page_of(operation)), read(client, url("operation", "changelist"))]
    pages += [read(client, url("audit", "changelist")), read(client, "/admin/")]
    cancel_operation(operation.id, by=EVIL, reason=EVIL)
    pages.append(read(client, page_of(operation)))
    assert not [page for page in pages if EVIL in page]
    assert "gotcha" in pages[1]


def test_a_queue_that_cannot_be_is_shown_as_text_in_the_form(log_in_as: LogIn) -> None:
    fill(1)
    page = confirm(
        log_in_as("superuser"), "update", everything="1", queue_name=EVIL
    ).content.decode()
    assert "gotcha" in page
    assert EVIL not in page


def test_calling_it_off_is_a_button_with_a_reason(log_in_as: LogIn) -> None:
    fail(3)
    operation = start_operation("retry", FAILED, query="status:failed")
    client = log_in_as("staff", *ALL)
    assert "Cancel operation" in read(client, page_of(operation))
    cancel = reverse("admin:taskqueue_operation_cancel", args=[operation.pk])
    assert client.get(cancel).status_code == 405
    assert client.post(cancel, {"reason": "no"}).url == page_of(operation)
    assert get_operation(operation.id).status == "cancelled"
    assert Audit.objects.get(noun="operation", verb="cancel").reason == "no"
    page = read(client, page_of(operation))
    assert "completed changes are kept" in page
    assert "Cancel operation" not in page
    assert client.post(cancel).status_code == 302
    assert "cannot be cancelled" in read(client, page_of(operation))


def test_the_page_is_refreshed_by_its_part_alone_and_only_where_it_differs(
    log_in_as: LogIn,
) -> None:
    fail(3)
    operation = start_operation("retry", FAILED, query="status:failed")
    client = log_in_as("staff", *ALL)
    first = client.get(page_of(operation), headers=REFRESH)
    assert "<html" not in first.content.decode()
    assert "csrf" not in first.content.decode()
    known = {**REFRESH, "If-None-Match": first.headers["ETag"]}
    assert client.get(page_of(operation), headers=known).status_code == 304
    serving.step(connection)
    again = client.get(page_of(operation), headers=known)
    assert again.status_code == 200
    assert "finished" in again.content.decode()


def test_without_a_living_worker_it_says_so(log_in_as: LogIn) -> None:
    fail(3)
    client = log_in_as("staff", *ALL)
    start = START + "?verb=retry&q=status:failed"
    operation = start_operation("retry", FAILED)
    assert "No workers are running" in read(client, start)
    assert "No workers are running" in read(client, page_of(operation))
    now = timezone.now()
    Worker.objects.create(
        name="w1", host="h", pid=1, started_at=now, seen_at=now, queues={}, versions={}
    )
    assert "No workers are running" not in read(client, start) + read(client, page_of(operation))


def test_one_that_failed_says_why(log_in_as: LogIn) -> None:
    operation = start_operation("retry", FAILED)
    Operation.objects.update(status="failed", finished_at=timezone.now(), error="ValueError: odd")
    page = read(log_in_as("viewer"), page_of(operation))
    assert "ValueError: odd" in page
    assert "tried again" not in page


def test_an_unknown_operation_or_verb_is_not_found(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    for address in (
        url("operation", "change", uuid4()),
        url("operation", "change", "nonsense"),
        START,
        START + "?verb=drop",
    ):
        assert client.get(address).status_code == 404
    assert client.post(START, {"verb": "drop", "confirmed": "yes"}).status_code == 404


def test_a_verb_and_a_filter_of_a_newer_version_are_shown_as_far_as_they_are_known(
    log_in_as: LogIn,
) -> None:
    operation = start_operation("retry", FAILED)
    chosen = {"which": {"moon_phase": "full"}, "walk": {"later": 1}}
    Operation.objects.update(verb="freeze", chosen=chosen, arguments={"degrees": -5})
    client = log_in_as("superuser")
    assert "freeze" in read(client, page_of(operation))
    assert "freeze" in read(client, url("operation", "changelist"))


def test_pages_cost_few_queries_however_many_tasks_are_chosen(
    log_in_as: LogIn, django_assert_max_num_queries: Any
) -> None:
    ids = fail(300)
    client = log_in_as("staff", *ALL)
    for _ in range(30):
        start_operation("retry", TaskFilter(ids=ids))
    start_operation("retry", FAILED, query="status:failed")
    for address in (
        url("operation", "changelist"),
        page_of(Operation.objects.all()[0]),
        START + "?verb=retry&q=status:failed",
    ):
        with django_assert_max_num_queries(15):
            read(client, address)


def test_to_cancel_without_the_permission_to_stop_leaves_alone_what_runs(log_in_as: LogIn) -> None:
    fill(4)
    claim(1)
    client = log_in_as("staff", "view_task", "view_operation", "operate")
    assert "Running tasks are not included" in read(client, START + "?verb=cancel&everything=1")
    confirm(client, "cancel", everything="1")
    serve_all()
    assert statuses() == {"cancelled": 3, "running": 1}
    assert not Audit.objects.filter(verb="stop").exists()
    running = Task.objects.get(status="running")
    confirm(client, "cancel", ids=[str(running.pk)])
    confirm(client, "cancel", q="status:running")
    serve_all()
    assert not Audit.objects.filter(verb="stop").exists()


def test_arguments_of_unknown_definitions_are_asked_for_only_by_who_may_view_them(
    log_in_as: LogIn,
) -> None:
    client = log_in_as("staff", *ALL)
    confirm(client, "retry", q="args.password:secret")
    assert not which_of(Operation.objects.get()).arguments_of_unknown


def test_a_form_that_is_sent_twice_counts_once(log_in_as: LogIn) -> None:
    fail(2)
    client = log_in_as("staff", "enqueue", *ALL)
    page = client.get(START, {"verb": "duplicate", "q": "status:failed"}).content.decode()
    key = page.split('name="operation" value="')[1][:36]
    answers = [confirm(client, "duplicate", q="status:failed", operation=key) for _ in range(2)]
    assert {each.url for each in answers} == {page_of(Operation.objects.get())}
    assert "This was requested already." in read(client, answers[1].url)
    assert LogEntry.objects.count() == 1
    serve_all()
    assert statuses() == {"failed": 2, "ready": 2}


@pytest.mark.parametrize(
    "given", [{"verb": "delete"}, {"q": "status:failed priority:0"}, {"q": "", "everything": "1"}]
)
def test_the_id_of_another_operation_is_refused(log_in_as: LogIn, given: dict[str, str]) -> None:
    fail(2)
    client, key = log_in_as("staff", *ALL), str(uuid4())
    asked = {"verb": "retry", "q": "status:failed", "operation": key}
    confirm(client, **asked)
    answer = confirm(client, **{**asked, **given})
    assert "exists, and is a different one" in answer.content.decode()
    assert Operation.objects.count() == LogEntry.objects.count() == 1


def test_the_list_says_how_tasks_were_chosen(log_in_as: LogIn) -> None:
    ids, client = fail(2), log_in_as("superuser")
    for which, query, words in (
        (TaskFilter(ids=ids), "", "chosen one by one"),
        (TaskFilter(everything=True), "", "all tasks"),
        (FAILED, "", "by a filter"),
        (FAILED, "status:failed", "status:failed"),
    ):
        operation = start_operation("retry", which, query=query)
        assert words in read(client, url("operation", "changelist"))
        assert words in read(client, page_of(operation))
