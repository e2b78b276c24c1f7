"""Whoever lacks permissions reads which ones, on a page of the admin."""

from __future__ import annotations

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test import Client
from django.utils.html import escape

from taskqueue.admin.limits import LimitAdmin
from taskqueue.models import Queue
from tests.admin.conftest import LogIn
from tests.admin.rows import Rows
from tests.admin.test_admin import url

pytestmark = pytest.mark.django_db


def refusal(client: Client, address: str, **posted: str) -> str:
    answer = client.post(address, posted) if posted else client.get(address)
    assert answer.status_code == 403, address
    return answer.content.decode()


def needed(*permissions: str) -> str:
    """The end of the sentence, in which each permission has its title too."""
    return escape(", ".join(permissions)) + "."


TASK, AUDIT = (
    "'Can view task' (taskqueue.view_task)",
    ("'Can view audit entry' (taskqueue.view_audit)"),
)


def test_a_list_and_a_row_name_the_permission_to_view_them(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("staff")
    for address in (url("audit", "changelist"), url("audit", "change", rows.audit.pk)):
        assert f"You need the permission {needed(AUDIT)}" in refusal(client, address)
    # Reports have no model whose rows one could view.
    assert needed(TASK) in refusal(client, url("failure", "changelist"))
    webhooks = refusal(client, url("endpoint", "changelist"))
    assert "(taskqueue.manage_webhooks)" in webhooks


def test_an_action_names_all_permissions_that_are_missing(rows: Rows, log_in_as: LogIn) -> None:
    client = log_in_as("staff")
    page = refusal(client, url("task", "act", rows.task.pk), verb="retry")
    assert "You need these permissions: " in page
    assert TASK.replace("'", "&#x27;") in page
    assert "(taskqueue.operate)" in page


@pytest.mark.parametrize(
    ("model", "page", "permission"),
    [
        ("schedule", "add", "edit_schedules"), ("task", "add", "enqueue"),
        ("alertrule", "new", "manage_alerts"), ("queue", "groups", "view_task"),
        ("lease", "gantt", "view_lease"), ("dashboard", "doctor", "view_worker"),
    ],
)  # fmt: skip
def test_forms_and_reports_name_what_they_need(
    model: str, page: str, permission: str, log_in_as: LogIn
) -> None:
    assert f"(taskqueue.{permission})" in refusal(log_in_as("staff"), url(model, page))


def test_the_page_leads_to_what_the_user_may_view(rows: Rows, log_in_as: LogIn) -> None:
    page = refusal(log_in_as("staff", "view_worker"), url("audit", "changelist"))
    assert url("worker", "changelist") in page
    assert 'href="/admin/"' in page


def test_whoever_lacks_no_permission_reads_that_it_is_not_allowed(
    rows: Rows, log_in_as: LogIn
) -> None:
    page = refusal(log_in_as("superuser"), url("lease", "change", rows.lease.pk), status="ready")
    assert "You may not do this." in page
    assert "can give you access" not in page


def test_a_refusal_of_the_project_keeps_its_words(
    log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bool:
        raise PermissionDenied("Not <before> noon.")

    monkeypatch.setattr(LimitAdmin, "has_view_permission", refuse)
    client = log_in_as("viewer", "view_worker")
    # The list of pages asks too, once the page is shown.
    monkeypatch.setattr(LimitAdmin, "get_model_perms", lambda *_: {})
    page = refusal(client, url("limit", "changelist"))
    assert "Not &lt;before&gt; noon." in page
    assert "You need" not in page


def test_performance_names_the_permission_for_figures(log_in_as: LogIn) -> None:
    page = refusal(log_in_as("staff", "view_task"), url("performance", "changelist"))
    assert "(taskqueue.view_rollup)" in page


def test_a_refusal_undoes_what_its_request_wrote(
    rows: Rows, log_in_as: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object, **__: object) -> bool:
        if not written:
            written.append(Queue.objects.create(name="written"))
        return False

    written: list[Queue] = []
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    monkeypatch.setattr(LimitAdmin, "has_view_permission", write)
    refusal(log_in_as("staff"), url("limit", "changelist"))
    assert written
    assert not Queue.objects.filter(name="written").exists()
