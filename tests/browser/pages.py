"""The addresses of our pages, with a shop's rows to show."""

from __future__ import annotations

from django.urls import reverse

from taskqueue.models import (
    AlertRule,
    Audit,
    Endpoint,
    Incident,
    Lease,
    Limit,
    Occurrence,
    Operation,
    Queue,
    Schedule,
    TaskLog,
    Worker,
)
from tests.browser.lively.site import Shop

LISTS = (
    "dashboard", "task", "workflow", "failure", "performance", "lease", "worker", "queue",
    "schedule", "occurrence", "operation", "tasklog", "audit",
)  # fmt: skip


def pages(shop: Shop) -> dict[str, str]:
    """Every page that is looked at, by a name that a file can have."""
    found = {"index": reverse("admin:index"), "app": reverse("admin:app_list", args=["taskqueue"])}
    found |= {name: reverse(f"admin:taskqueue_{name}_changelist") for name in LISTS}
    return (
        found | _rules() | _tasks(shop) | _workflows(shop) | _rows() | _schedules() | _others(found)
    )


def _tasks(shop: Shop) -> dict[str, str]:
    return {
        "task-running": _change("task", shop.report.pk),
        "task-failed": _change("task", shop.failed.pk),
        "task-planned": _change("task", shop.planned.pk),
        "task-succeeded": _change("task", shop.succeeded.pk),
        "task-enqueue": reverse("admin:taskqueue_task_add") + "?name=shop.mail.send_receipt",
        "task-retry": reverse("admin:taskqueue_task_edit", args=[shop.failed.pk, "retry_with"]),
        "task-reschedule": reverse(
            "admin:taskqueue_task_edit", args=[shop.planned.pk, "reschedule"]
        ),
        "task-terms": reverse("admin:taskqueue_task_edit", args=[shop.planned.pk, "update"]),
        "task-history": reverse("admin:taskqueue_task_history", args=[shop.failed.pk]),
        "task-choose": reverse("admin:taskqueue_task_add"),
        "task-add": reverse("admin:taskqueue_task_add") + "?name=shop.reports.build_monthly",
        "task-delete": reverse("admin:taskqueue_task_delete", args=[shop.failed.pk]),
    }


def _workflows(shop: Shop) -> dict[str, str]:
    act = reverse("admin:taskqueue_workflow_act", args=[shop.flows.failed])
    return {
        "workflow-failed": _change("workflow", shop.flows.failed),
        "workflow-step": f"{_change('workflow', shop.flows.failed)}?step=clean",
        "workflow-running": _change("workflow", shop.flows.running),
        "workflow-child": _change("workflow", shop.flows.child),
        "workflow-steps": f"{_change('workflow', shop.flows.failed)}?status=cancelled",
        "workflow-wide": f"{_change('workflow', shop.flows.wide)}?runs=shop.reports.summarise",
        "workflow-retry": f"{act}?verb=retry",
        "workflow-resolve": f"{act}?verb=resolve",
        "workflow-delete": f"{act}?verb=delete",
    }


def _rows() -> dict[str, str]:
    """One row of each kind that has a page."""
    return {
        "lease-one": _change("lease", Lease.objects.filter(status="failed")[0].pk),
        "worker-one": _change("worker", Worker.objects.get(name="batch-1-812-77ab").pk),
        "worker-draining": _change("worker", Worker.objects.get(status="stopping").pk),
        "queue-one": _change("queue", Queue.objects.get(name="mail").pk),
        "queue-paused": _change("queue", Queue.objects.get(name="imports").pk),
        "queue-groups": reverse("admin:taskqueue_queue_groups"),
        "tasklog-one": _change("tasklog", TaskLog.objects.all()[0].pk),
        "audit-one": _change("audit", Audit.objects.all()[0].pk),
        "operation-running": _change("operation", Operation.objects.get(status="running").pk),
        "operation-finished": _change("operation", Operation.objects.get(status="finished").pk),
        "occurrence-one": _change("occurrence", Occurrence.objects.all()[0].pk),
    }


def _schedules() -> dict[str, str]:
    one = Schedule.objects.get(name="reindex the catalogue").pk
    return {
        "schedule-add": reverse("admin:taskqueue_schedule_add"),
        "schedule-one": _change("schedule", one),
        "schedule-paused": _change("schedule", Schedule.objects.get(name="feeds").pk),
        "schedule-edit": reverse("admin:taskqueue_schedule_edit", args=[one]),
        "schedule-run": reverse("admin:taskqueue_schedule_run", args=[one]),
        "schedule-import": reverse("admin:taskqueue_schedule_import"),
        "schedule-delete": reverse("admin:taskqueue_schedule_delete", args=[one]),
    }


def _rules() -> dict[str, str]:
    """The pages of limits, alerts and webhook endpoints."""
    rule = AlertRule.objects.get(name="queues without workers").pk
    endpoint = Endpoint.objects.get(is_enabled=True).pk
    return {
        "limits": reverse("admin:taskqueue_limit_changelist"),
        "limit-one": _change("limit", Limit.objects.get(name="feeds:supplier").pk),
        "queue-limited": _change("queue", Queue.objects.get(name="images").pk),
        "alerts": reverse("admin:taskqueue_incident_changelist"),
        "alert-firing": _change("incident", Incident.objects.filter(status="firing")[0].pk),
        "alert-rules": reverse("admin:taskqueue_alertrule_changelist"),
        "alert-rule": _change("alertrule", rule),
        "alert-rule-add": reverse("admin:taskqueue_alertrule_new"),
        "alert-rule-edit": reverse("admin:taskqueue_alertrule_edit", args=[rule]),
        "endpoints": reverse("admin:taskqueue_endpoint_changelist"),
        "endpoint-one": _change("endpoint", endpoint),
        "endpoint-add": reverse("admin:taskqueue_endpoint_add"),
        "endpoint-edit": reverse("admin:taskqueue_endpoint_edit", args=[endpoint]),
    }


def _others(lists: dict[str, str]) -> dict[str, str]:
    """Lists, searched and sorted otherwise, and pages that ask before they act."""
    start = reverse("admin:taskqueue_operation_start")
    return {
        "lease-gantt": reverse("admin:taskqueue_lease_gantt") + "?span=1d",
        "task-sorted": lists["task"] + "?q=status%3Afailed&sort=-run_time",
        "dashboard-day": lists["dashboard"] + "?span=day",
        "dashboard-week": lists["dashboard"] + "?span=week",
        "doctor": reverse("admin:taskqueue_dashboard_doctor"),
        "task-searched": lists["task"] + "?q=status:failed+name:shop.imports.*",
        "task-none": lists["task"] + "?q=name:shop.nothing",
        "failure-since": lists["failure"] + "?since=1d",
        "performance-since": lists["performance"] + "?since=2h",
        "performance-name": lists["performance"] + "?name=shop.mail.send_receipt",
        "operation-start": start + "?verb=retry&q=status:failed",
        "operation-update": start + "?verb=update&q=status:ready",
    }


def _change(model: str, key: object) -> str:
    return reverse(f"admin:taskqueue_{model}_change", args=[key])


def _edit(key: object, what: str) -> str:
    return reverse("admin:taskqueue_task_edit", args=[key, what])
