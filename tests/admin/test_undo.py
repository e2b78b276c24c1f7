"""Ten seconds to undo an action on many tasks, in the admin."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from taskqueue.control import start_operation
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.models import Operation
from tests.admin.conftest import LogIn
from tests.admin.test_admin import read, url
from tests.admin.test_operations import ALL, FAILED, START, page_of
from tests.engine.operation_steps import fail, fill, let_begin, serve_all, statuses

pytestmark = pytest.mark.django_db
RETRY = {"verb": "retry", "q": "status:failed", "confirmed": "yes"}


def undo(operation: Operation) -> str:
    return reverse("admin:taskqueue_operation_cancel", args=[operation.pk])


@pytest.mark.parametrize("verb", sorted(set(BULK_VERBS) - {"stop"}))
def test_an_action_on_many_waits_for_ten_seconds(log_in_as: LogIn, verb: str) -> None:
    fail(1)
    fill(1)
    client = log_in_as("superuser")
    page = read(client, f"{START}?verb={verb}&everything=1")
    assert ("You can undo it until then." in page) == ('name="confirmed"' in page)
    given = {"run_after": "in 5 minutes", "priority": "7"}
    client.post(START, {"verb": verb, "everything": "1", "confirmed": "yes", **given})
    operation = Operation.objects.get()
    assert operation.starts_at is not None
    assert 9 < (operation.starts_at - operation.created_at).total_seconds() < 11
    assert serve_all() == 0


def test_stopping_running_tasks_does_not_wait(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    client.post(START, {"verb": "stop", "everything": "1", "confirmed": "yes"})
    operation = Operation.objects.get()
    assert operation.starts_at is None
    assert "Nothing has been done yet" not in read(client, page_of(operation))


def test_the_page_and_the_list_offer_to_undo_it_until_it_begins(log_in_as: LogIn) -> None:
    fail(3)
    client = log_in_as("staff", *ALL)
    client.post(START, RETRY)
    operation = Operation.objects.get()
    for address in (page_of(operation), url("task", "changelist")):
        page = read(client, address)
        assert "Retry: 3 tasks" in page
        assert "Nothing has been done yet." in page
        assert "data-undo-seconds" in page
    let_begin()
    for address in (page_of(operation), url("task", "changelist")):
        assert "data-undo-seconds" not in read(client, address)


def test_undoing_it_changes_nothing_and_says_so(log_in_as: LogIn) -> None:
    fail(3)
    client = log_in_as("staff", *ALL)
    client.post(START, RETRY)
    operation = Operation.objects.get()
    response = client.post(undo(operation), {"next": url("task", "changelist")})
    assert response.url == url("task", "changelist")
    assert "Undone. Nothing was changed." in read(client, response.url)
    let_begin()
    serve_all()
    assert statuses() == {"failed": 3}
    assert "Undone" in LogEntry.objects.latest("id").change_message


def test_who_undoes_too_late_is_told_so(log_in_as: LogIn) -> None:
    fail(300)
    client = log_in_as("staff", *ALL)
    client.post(START, RETRY)
    operation = Operation.objects.get()
    let_begin()
    serve_all()
    client.post(undo(operation))
    assert "cannot be cancelled" in read(client, page_of(operation))
    assert statuses() == {"ready": 300}


def test_their_own_can_be_undone_by_users_who_may_not_view_operations(log_in_as: LogIn) -> None:
    client = log_in_as("staff", "view_task", "operate")
    client.post(START, RETRY)
    mine = Operation.objects.get()
    other = start_operation("retry", FAILED, delay=10, by="somebody else")
    page = read(client, url("task", "changelist"))
    assert undo(mine) in page
    assert undo(other) not in page
    assert client.post(undo(other)).status_code == 403
    assert client.post(undo(mine)).url == url("task", "changelist")
    mine.refresh_from_db()
    assert mine.status == "cancelled"
    assert client.post(undo(mine)).url == url("task", "changelist")
    assert "This can no longer be undone" in read(client, url("task", "changelist"))


def test_text_of_others_in_the_bar_is_escaped(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    client.post(START, RETRY)
    Operation.objects.update(verb="<b>new</b>")
    assert "<b>new</b>" not in read(client, url("task", "changelist"))
