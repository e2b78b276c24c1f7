"""The admin shows stored rows to users who may view them, and lets nobody edit them."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from taskqueue.models import Lease, Task
from tests.admin.conftest import LogIn
from tests.admin.rows import EVIL, SECRET, Rows
from tests.sample.tasks import add, log_in

MODELS = ("task", "lease", "worker", "queue", "tasklog", "audit")
ROLES = {"anonymous": 302, "user": 302, "staff": 403, "viewer": 200, "superuser": 200}


def url(model: str, page: str, *key: object) -> str:
    return reverse(f"admin:taskqueue_{model}_{page}", args=key)


def read(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, (address, response.status_code)
    return response.content.decode().replace("<wbr>", "")


# Who may see what


@pytest.mark.slow
@pytest.mark.parametrize(("role", "status"), ROLES.items())
@pytest.mark.parametrize("model", MODELS)
def test_lists_pages_and_histories_are_for_those_who_may_view(
    model: str, role: str, status: int, rows: Rows, log_in_as: LogIn
) -> None:
    client, key = log_in_as(role), rows.of(model).pk
    for address in (
        url(model, "changelist"), url(model, "change", key), url(model, "history", key),
    ):  # fmt: skip
        assert client.get(address).status_code == status, address


@pytest.mark.parametrize("model", MODELS)
def test_the_permission_to_view_one_model_shows_no_other(
    model: str, rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("viewer", f"view_{model}")
    for other in MODELS:
        expected = 200 if other == model else 403
        assert client.get(url(other, "changelist")).status_code == expected, other


@pytest.mark.parametrize(
    ("model", "role"),
    [
        (model, role)
        for model in MODELS
        for role in ("staff", "viewer", "superuser")
        if (model, role) != ("task", "superuser")  # who may enqueue and delete tasks
    ],
)
def test_nothing_can_be_added_changed_or_deleted_by_those_who_may_look(
    model: str, role: str, rows: Rows, log_in_as: LogIn
) -> None:
    client, key = log_in_as(role), rows.of(model).pk
    # Tasks are enqueued and deleted by forms of their own: see test_enqueue_form, test_task_acts.
    may = (model, role) == ("task", "superuser")
    forbidden = [] if may else [url(model, "add"), url(model, "delete", key)]
    for address in forbidden:
        assert client.get(address).status_code == 403, address
    for address in (*forbidden, url(model, "change", key)):
        answer = client.post(address, {"status": "ready", "name": "other", "post": "yes"})
        assert answer.status_code == 403, address
    action = {"action": "delete_selected", "_selected_action": [str(key)], "post": "yes"}
    client.post(url(model, "changelist"), action)
    assert type(rows.of(model)).objects.filter(pk=key).exists()


def test_there_are_permissions_to_view_and_one_for_each_kind_of_act(db: None) -> None:
    from django.contrib.auth.models import Permission

    names = Permission.objects.filter(content_type__app_label="taskqueue")
    assert sorted(names.values_list("codename", flat=True)) == [
        "control_queues", "edit_schedules", "enqueue", "manage_alerts", "manage_searches",
        "manage_webhooks", "operate", "purge", "stop",
        "view_alertrule", "view_arguments", "view_audit", "view_incident", "view_lease",
        "view_limit", "view_occurrence",
        "view_operation", "view_queue", "view_rollup", "view_schedule", "view_task",
        "view_tasklog", "view_worker", "view_workflow",
    ]  # fmt: skip


def test_a_row_that_is_gone_leads_back_to_the_index(log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    for key in ("01900000-0000-7000-8000-000000000000", "no-id"):
        assert client.get(url("task", "change", key)).status_code == 302


# What a task's page shows


def test_a_task_s_page_shows_its_attempts_and_log_lines(rows: Rows, log_in_as: LogIn) -> None:
    page = read(log_in_as("viewer"), url("task", "change", rows.task.pk))
    assert url("lease", "change", rows.lease.pk) in page
    assert "builtins.ValueError" in page
    assert "worker-1" in page
    assert "taskqueue-lines" in page
    assert "WARNING" in page


def test_attempts_and_log_lines_need_permissions_of_their_own(rows: Rows, log_in_as: LogIn) -> None:
    page = read(log_in_as("viewer", "view_task"), url("task", "change", rows.task.pk))
    assert "taskqueue-leases" not in page
    assert "taskqueue-lines" not in page
    assert "worker-1" not in page


@pytest.mark.parametrize("model", MODELS)
def test_text_from_users_and_errors_is_escaped(model: str, rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    pages = [
        read(client, url(model, "changelist")),
        read(client, url(model, "change", rows.of(model).pk)),
    ]
    assert not any(EVIL in page for page in pages)
    if model != "queue":
        assert any("&lt;script&gt;alert(&#x27;gotcha" in page for page in pages)


def test_pages_hold_no_script_or_style_of_ours(rows: Rows, log_in_as: LogIn) -> None:
    page = read(log_in_as("superuser"), url("task", "change", rows.task.pk))
    for part in page.split("taskqueue-")[1:]:
        assert "style=" not in part
        assert "onclick" not in part


# Secrets


@pytest.mark.parametrize("role", ["viewer", "superuser"])
def test_a_sensitive_argument_is_on_no_page(role: str, rows: Rows, log_in_as: LogIn) -> None:
    by_name = log_in.enqueue(user="bob", password=SECRET)
    client = log_in_as(role)
    for model in MODELS:
        assert SECRET not in read(client, url(model, "changelist"))
        assert SECRET not in read(client, url(model, "change", rows.of(model).pk))
    page = read(client, url("task", "change", by_name.id))
    assert SECRET not in page
    assert "[redacted]" in page
    assert "bob" in page


def test_arguments_of_an_unknown_definition_need_a_permission(rows: Rows, log_in_as: LogIn) -> None:
    Task.objects.filter(pk=rows.task.pk).update(name="shop.tasks.gone")
    page = read(log_in_as("viewer"), url("task", "change", rows.task.pk))
    assert SECRET not in page
    assert "taskqueue.view_arguments" in page


def test_who_has_that_permission_sees_them(rows: Rows, log_in_as: LogIn) -> None:
    Task.objects.filter(pk=rows.task.pk).update(name="shop.tasks.gone")
    client = log_in_as("viewer", "view_task", "view_arguments")
    assert SECRET in read(client, url("task", "change", rows.task.pk))


@pytest.mark.parametrize(
    "lookup",
    [
        "args__icontains", "kwargs__password__startswith", "kwargs__password", "args__1",
        "return_value__isnull", "leases__traceback__contains", "name__startswith",
    ],
)  # fmt: skip
def test_the_address_of_a_list_cannot_be_used_to_guess_a_secret(
    lookup: str, rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    assert client.get(url("task", "changelist"), {lookup: "c"}).status_code == 400
    assert client.get(url("lease", "changelist"), {f"task__{lookup}": "c"}).status_code == 400


# Finding


def test_tasks_are_found_by_id_and_by_parts_of_name_and_key(rows: Rows, log_in_as: LogIn) -> None:
    other, client = add.enqueue(1), log_in_as("superuser")
    for found in (
        str(rows.task.pk),
        rows.task.pk.hex,
        rows.task.name,
        "log_in",
        "the-",
        " the-key ",
    ):
        page = client.get(url("task", "changelist"), {"q": found}, follow=True).content.decode()
        assert str(rows.task.pk) in page
        assert str(other.id) not in page
    for missed in ("shop.sample", "thekey", "%", SECRET, "x" * 1000):
        response = client.get(url("task", "changelist"), {"q": missed})
        assert response.status_code == 200
        assert str(rows.task.pk) not in response.content.decode()


def test_tasks_are_filtered_by_status_and_queue(rows: Rows, log_in_as: LogIn) -> None:
    other, client = add.using(queue_name="mail").enqueue(1), log_in_as("superuser")
    for filters, expected in (
        ({"status__exact": "cancelled"}, rows.task.pk),
        ({"status__exact": "ready"}, other.id),
        ({"queue_name": "default"}, rows.task.pk),
        ({"queue_name": "mail"}, other.id),
    ):
        response = client.get(url("task", "changelist"), filters, follow=True)
        assert [task.pk for task in response.context["cl"].result_list] == [expected], filters


@pytest.mark.parametrize("model", ["lease", "tasklog"])
def test_rows_of_one_task_are_found_by_its_id(model: str, rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    for filters in ({"q": str(rows.task.pk)}, {"task__id__exact": str(rows.task.pk)}):
        response = client.get(url(model, "changelist"), filters)
        assert response.context["cl"].result_count == 1
    for missed in ("01900000-0000-7000-8000-000000000000", "no-id"):
        response = client.get(url(model, "changelist"), {"q": missed})
        assert response.context["cl"].result_count == 0


def test_a_worker_is_found_by_its_name_and_leads_to_its_leases(
    rows: Rows, log_in_as: LogIn
) -> None:
    client = log_in_as("superuser")
    for asked, count in (("worker-1", 1), ("host-1", 1), ("worker-2", 0)):
        response = client.get(url("worker", "changelist"), {"q": asked})
        assert len(response.context["living"]) == count
    filters = {"worker__name__exact": "worker-1", "status__exact": "failed"}
    assert client.get(url("lease", "changelist"), filters).context["cl"].result_count == 1


def test_a_lease_is_shown_also_when_its_worker_s_row_is_gone(rows: Rows, log_in_as: LogIn) -> None:
    rows.worker.delete()
    client = log_in_as("superuser")
    assert "worker-1" in read(client, url("lease", "changelist"))
    assert "worker-1" in read(client, url("lease", "change", rows.lease.pk))


def test_a_worker_is_alive_while_it_was_seen_within_its_lease(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("superuser")
    assert "taskqueue-badge--active" in read(client, url("worker", "changelist"))
    rows.worker.seen_at = rows.worker.seen_at.replace(year=2020)
    rows.worker.save()
    assert "taskqueue-badge--lost" in read(client, url("worker", "changelist"))


def test_attempts_that_seem_wedged_are_found_and_shown(rows: Rows, log_in_as: LogIn) -> None:
    now = timezone.now()
    ended, running = rows.lease, Lease.objects.get(pk=rows.lease.pk)
    ended.wedged_at = now
    ended.save()
    running.pk, running.attempt, running.status = None, 2, "running"
    running.finished_at, running.wedged_at = None, now
    running.save()
    client = log_in_as("viewer")
    shown = client.get(url("lease", "changelist"), {"wedged": "yes"})
    assert [lease.pk for lease in shown.context["cl"].result_list] == [running.pk]
    assert shown.content.decode().count(">seems wedged<") == 1
    assert "wedged" in read(client, url("lease", "change", running.pk))
    page = read(client, url("task", "change", rows.task.pk))
    assert page.count("running, seems wedged") == page.count("seems wedged") == 1
