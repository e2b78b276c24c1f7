"""Audit entries, alerts, groups and pauses lead to what they are about."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from taskqueue import control
from taskqueue.models import AlertRule, Audit, Endpoint, Incident, Workflow
from tests.admin.conftest import LogIn
from tests.admin.schedule_rows import simple_schedule
from tests.admin.test_admin import read, url
from tests.monitoring.rows import make_task
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("noun", "subject", "page", "query"),
    [
        ("queue", "mail", "queue_named", "?name=mail"),
        ("worker", "web-1", "worker_changelist", "?q=web-1"),
        ("schedule", "every hour", "schedule_changelist", "?q=every+hour"),
        ("definition", "shop.send", "performance_changelist", "?name=shop.send"),
        ("limit", "crm", "limit_changelist", "?q=crm"),
        ("alert_rule", "late", "alertrule_changelist", "?q=late"),
    ],
)
def test_an_audit_entry_links_to_its_subject(
    noun: str, subject: str, page: str, query: str, log_in_as: LogIn
) -> None:
    row = Audit.objects.create(noun=noun, verb="pause", subject=subject)
    client = log_in_as("superuser")
    link = f'href="{reverse(f"admin:taskqueue_{page}")}{query}"'
    assert link in read(client, url("audit", "changelist"))
    assert link in read(client, url("audit", "change", row.pk))


def test_an_audit_entry_links_to_rows_by_their_ids(log_in_as: LogIn) -> None:
    keys = {noun: str(uuid4()) for noun in ("task", "workflow", "operation")}
    for noun, key in (*keys.items(), ("webhook", "7")):
        Audit.objects.create(noun=noun, verb="cancel", subject=key)
    Audit.objects.create(noun="", verb="prune", subject="")
    page = read(log_in_as("superuser"), url("audit", "changelist"))
    for noun, key in keys.items():
        assert f'href="{url(noun, "change", key)}"' in page
    assert f'href="{url("endpoint", "change", 7)}"' in page


def test_an_alert_links_to_its_subject_and_its_example(log_in_as: LogIn) -> None:
    rule = AlertRule.objects.create(name="late", kind="queue_latency")
    task = make_task("ready")
    alert = Incident.objects.create(
        rule=rule, status="firing", began_at=timezone.now(), subject="mail", example=str(task.pk)
    )
    client = log_in_as("superuser")
    page = read(client, url("incident", "change", alert.pk))
    assert f'href="{reverse("admin:taskqueue_queue_named")}?name=mail"' in page
    assert f'href="{url("task", "change", task.pk)}"' in page
    # The subjects of a kind with several scopes may be more than a name.
    AlertRule.objects.update(kind="failure")
    assert "?name=mail" not in read(client, url("incident", "change", alert.pk))


def test_a_paused_definition_links_to_its_page_and_says_since_when(log_in_as: LogIn) -> None:
    control.pause_definition("shop.send", by="lee")
    page = read(log_in_as("superuser"), url("queue", "changelist"))
    assert f'{reverse("admin:taskqueue_performance_changelist")}?name=shop.send"' in page
    assert "since <time" in page


def test_a_paused_definition_is_no_link_for_whoever_may_not_view_its_page(
    log_in_as: LogIn,
) -> None:
    control.pause_definition("shop.send")
    page = read(log_in_as("staff", "view_queue"), url("queue", "changelist"))
    assert "send</strong>" in page
    assert reverse("admin:taskqueue_performance_changelist") not in page


def test_an_endpoint_without_a_description_is_named_by_its_host(log_in_as: LogIn) -> None:
    row = Endpoint.objects.create(url="https://user:key@hooks.shop.example/in?token=x", secret="s")
    client = log_in_as("superuser")
    assert ">hooks.shop.example</a>" in read(client, url("endpoint", "changelist"))
    for page in (url("endpoint", "change", row.pk), url("endpoint", "edit", row.pk)):
        title = read(client, page).partition("<title>")[2].partition("</title>")[0]
        assert "hooks.shop.example" in title
        assert "token" not in title


def test_the_form_of_an_alert_rule_names_endpoints_to_those_who_may_see_them(
    log_in_as: LogIn,
) -> None:
    chosen, other = (
        Endpoint.objects.create(url=f"https://{name}.example/in?token=x", secret="s")
        for name in ("one", "two")
    )
    client = log_in_as("superuser")
    given = {"name": "late", "kind": "queue_depth", "scope": "all", "enabled": "on"}
    client.post(url("alertrule", "new"), {**given, "endpoints": [str(chosen.pk)]})
    rule = AlertRule.objects.get()
    assert rule.channels["endpoints"] == [str(chosen.pk)]
    page = read(client, url("alertrule", "edit", rule.pk))
    assert "one.example" in page
    assert "token=x" not in page
    assert page.count(" checked") == 2  # It is enabled, too.
    client.post(url("alertrule", "edit", rule.pk), {**given, "endpoints": [str(other.pk)]})
    rule.refresh_from_db()
    assert rule.channels["endpoints"] == [str(other.pk)]


def test_endpoints_of_one_host_are_told_apart_by_their_ids(log_in_as: LogIn) -> None:
    rows = [Endpoint.objects.create(url=f"https://one.example/{name}", secret="s") for name in "ab"]
    page = read(log_in_as("superuser"), url("alertrule", "new"))
    for row in rows:
        assert f"one.example ({row.pk})" in page


def test_whoever_may_not_manage_webhooks_types_the_ids_of_endpoints(log_in_as: LogIn) -> None:
    row = Endpoint.objects.create(url="https://one.example/in", secret="s")
    client = log_in_as("staff", "view_alertrule", "manage_alerts")
    page = read(client, url("alertrule", "new"))
    assert "one.example" not in page
    given = {"name": "late", "kind": "queue_depth", "scope": "all", "enabled": "on"}
    client.post(url("alertrule", "new"), {**given, "endpoints": str(row.pk)})
    assert AlertRule.objects.get().channels["endpoints"] == [str(row.pk)]
    assert f">{row.pk}</textarea>" in read(
        client, url("alertrule", "edit", AlertRule.objects.get().pk)
    ).replace("\n", "")


def test_a_schedule_links_to_the_page_of_its_task(log_in_as: LogIn) -> None:
    row = simple_schedule("every hour")
    page = read(log_in_as("superuser"), url("schedule", "change", row.pk))
    link = f'href="{reverse("admin:taskqueue_performance_changelist")}?name={row.task_name}"'
    assert link in page


def test_workflows_of_one_name_are_told_apart_by_their_keys_or_ids(log_in_as: LogIn) -> None:
    runs = [(noop.s() | noop.si()).enqueue() for _ in range(2)]
    Workflow.objects.filter(id=runs[0].id).update(unique_key="2026-11-22")
    page = read(log_in_as("superuser"), url("workflow", "changelist"))
    for run in runs:
        row = Workflow.objects.get(id=run.id)
        assert (row.unique_key or f"…{str(run.id)[-8:]}") in page
