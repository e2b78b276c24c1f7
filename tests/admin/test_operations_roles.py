"""Permissions to request, view and cancel operations."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from taskqueue.control import TaskFilter, get_operation, start_operation
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.models import Audit, Operation, Task
from tests.admin.conftest import LogIn
from tests.admin.test_admin import url
from tests.engine.operation_steps import fail, fill

pytestmark = pytest.mark.django_db

START = "/admin/taskqueue/operation/start/"
KINDS = ("operate", "stop", "purge")
EVERY_KIND = ("enqueue", "control_queues", "edit_schedules", "view_arguments", *KINDS)


def kinds_of(verb: str) -> list[str]:
    """The kinds of acts that it is, each with a permission of its own."""
    own = {"stop": "stop", "delete": "purge"}.get(verb, "operate")
    return [own, "enqueue"] if verb == "duplicate" else [own]


def extra(verb: str) -> dict[str, str]:
    return {"reschedule": {"run_after": "in 5 minutes"}, "update": {"priority": "5"}}.get(verb, {})


@pytest.mark.parametrize("verb", sorted(BULK_VERBS))
def test_each_verb_takes_the_permission_of_its_kind_and_that_to_view_tasks(
    log_in_as: LogIn, verb: str
) -> None:
    fill(1)
    for needed in kinds_of(verb):
        others = [kind for kind in EVERY_KIND if kind != needed]
        client = log_in_as("staff", "view_task", "view_operation", *others)
        assert refused(client, verb), needed
        delete_user()


@pytest.mark.parametrize("verb", sorted(BULK_VERBS))
@pytest.mark.parametrize("role", ["viewer", "staff", "user", "anonymous"])
def test_users_who_may_at_most_view_are_refused(log_in_as: LogIn, role: str, verb: str) -> None:
    fill(1)
    assert refused(log_in_as(role), verb)


@pytest.mark.parametrize("verb", sorted(BULK_VERBS))
def test_without_the_permission_to_view_tasks_it_is_refused(log_in_as: LogIn, verb: str) -> None:
    fill(1)
    assert refused(log_in_as("staff", "view_operation", *EVERY_KIND), verb)


@pytest.mark.parametrize("verb", sorted(BULK_VERBS))
def test_with_just_these_permissions_it_is_done(log_in_as: LogIn, verb: str) -> None:
    fill(1)
    client = log_in_as("staff", "view_task", *kinds_of(verb))
    given = {"verb": verb, "everything": "1", "confirmed": "yes", **extra(verb)}
    assert client.get(START, given).status_code == 200
    assert not Operation.objects.exists(), "a GET changes nothing"
    assert client.post(START, given).status_code == 302
    assert Operation.objects.get().verb == verb


def refused(client: Client, verb: str) -> bool:
    """By every way in; somebody who is not logged in is sent to do so."""
    given = {"verb": verb, "everything": "1", "confirmed": "yes", **extra(verb)}
    action = {"action": f"{verb}_many", "select_across": "1", "index": "0"}
    listed = {**action, "_selected_action": str(Task.objects.all()[0].pk)}
    answers = [
        client.get(START, given).status_code,
        client.post(START, given).status_code,
        client.post(START, {"verb": verb, "everything": "1"}).status_code,
        client.post(url("task", "changelist"), listed).status_code,
    ]
    assert not Operation.objects.exists()
    return set(answers) <= {302, 403} and len(set(answers)) == 1


def test_calling_off_takes_what_asking_takes(log_in_as: LogIn) -> None:
    fail(1)
    operation = start_operation("delete", TaskFilter(statuses=["failed"]))
    cancel = reverse("admin:taskqueue_operation_cancel", args=[operation.pk])
    page = url("operation", "change", operation.pk)
    for role, permissions in (
        ("staff", ("view_operation", "operate", "stop")),
        ("staff", ("purge",)),
        ("viewer", ()),
    ):
        client = log_in_as(role, *permissions)
        assert client.post(cancel).status_code == 403
        shown = client.get(page)
        assert shown.status_code == 403 or "Cancel operation" not in shown.content.decode()
        delete_user()
    assert get_operation(operation.id).status == "waiting"
    client = log_in_as("staff", "view_operation", "purge")
    assert "Cancel operation" in client.get(page).content.decode()
    assert client.post(cancel).status_code == 302
    assert get_operation(operation.id).status == "cancelled"


def delete_user() -> None:
    from django.contrib.auth.models import User

    User.objects.all().delete()


def test_operations_are_shown_to_who_may_view_them(log_in_as: LogIn) -> None:
    operation = start_operation("retry", TaskFilter(statuses=["failed"]))
    addresses = (url("operation", "changelist"), url("operation", "change", operation.pk))
    client = log_in_as("staff", "view_task", *EVERY_KIND)
    assert [client.get(each).status_code for each in addresses] == [403, 403]
    delete_user()
    client = log_in_as("staff", "view_operation")
    assert [client.get(each).status_code for each in addresses] == [200, 200]
    assert [client.post(each).status_code for each in addresses[1:]] == [405]


def test_values_of_arguments_in_a_search_are_shown_to_who_may_view_them(log_in_as: LogIn) -> None:
    given = {"verb": "retry", "q": "args.token:hunter2 status:failed", "confirmed": "yes"}
    log_in_as("superuser").post(START, given)
    operation = Operation.objects.get()
    change = url("operation", "change", operation.pk)
    pages = (url("operation", "changelist"), change)
    assert "args.token:[redacted] status" in LogEntry.objects.get().change_message
    delete_user()
    client = log_in_as("staff", "view_operation", "view_audit")
    for page in pages:
        content = client.get(page).content.decode()
        assert "args.token:[redacted] status:failed" in content, page
        assert "hunter2" not in content, page
    line = url("audit", "change", Audit.objects.get(noun="operation", verb="start").pk)
    assert "hunter2" not in client.get(line).content.decode()
    delete_user()
    client = log_in_as("staff", "view_operation", "view_arguments")
    assert all("args.token:hunter2" in client.get(page).content.decode() for page in pages)


def test_names_of_workers_in_a_search_are_shown_to_who_may_view_leases(log_in_as: LogIn) -> None:
    given = {"verb": "retry", "q": "worker:w1 status:failed", "confirmed": "yes"}
    log_in_as("superuser").post(START, given)
    operation = Operation.objects.get()
    pages = (url("operation", "changelist"), url("operation", "change", operation.pk))
    assert "worker:[redacted] status" in LogEntry.objects.get().change_message
    delete_user()
    client = log_in_as("staff", "view_operation", "view_arguments")
    for page in pages:
        content = client.get(page).content.decode()
        assert "worker:[redacted] status:failed" in content, page
        assert "worker:w1" not in content, page
    delete_user()
    client = log_in_as("staff", "view_operation", "view_lease")
    assert all("worker:w1" in client.get(page).content.decode() for page in pages)


def test_a_post_without_the_token_is_refused(log_in_as: LogIn) -> None:
    operation = start_operation("retry", TaskFilter(statuses=["failed"]))
    client = log_in_as("superuser")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    cancel = reverse("admin:taskqueue_operation_cancel", args=[operation.pk])
    given = {"verb": "retry", "everything": "1", "confirmed": "yes"}
    assert strict.post(START, given).status_code == 403
    assert strict.post(cancel).status_code == 403
    assert Operation.objects.count() == 1
