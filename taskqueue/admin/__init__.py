"""The admin's pages.

Django imports this module if its admin is installed.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from taskqueue.admin.alerts.incidents import IncidentAdmin
from taskqueue.admin.alerts.rules import AlertRuleAdmin
from taskqueue.admin.audit import AuditAdmin
from taskqueue.admin.dashboard.pages import DashboardAdmin
from taskqueue.admin.failures import FailureAdmin
from taskqueue.admin.leases import LeaseAdmin, TaskLogAdmin
from taskqueue.admin.limits import LimitAdmin
from taskqueue.admin.occurrences import OccurrenceAdmin
from taskqueue.admin.operations.pages import OperationAdmin
from taskqueue.admin.performance import PerformanceAdmin
from taskqueue.admin.queues import QueueAdmin
from taskqueue.admin.schedules.lists import ScheduleAdmin
from taskqueue.admin.tasks.pages import TaskAdmin
from taskqueue.admin.webhooks.pages import EndpointAdmin
from taskqueue.admin.workers import WorkerAdmin
from taskqueue.admin.workflows.pages import WorkflowAdmin
from taskqueue.models import (
    AlertRule,
    Audit,
    Dashboard,
    Endpoint,
    Failure,
    Incident,
    Lease,
    Limit,
    Occurrence,
    Operation,
    Performance,
    Queue,
    Schedule,
    Task,
    TaskLog,
    Worker,
    Workflow,
)

__all__ = ["PAGES", "register", "unregister"]

# The models that have pages, with their ModelAdmin classes.
PAGES: tuple[tuple[Any, Any], ...] = (
    (Dashboard, DashboardAdmin),
    (Task, TaskAdmin),
    (Failure, FailureAdmin),
    (Performance, PerformanceAdmin),
    (Workflow, WorkflowAdmin),
    (Lease, LeaseAdmin),
    (Worker, WorkerAdmin),
    (Queue, QueueAdmin),
    (Limit, LimitAdmin),
    (Schedule, ScheduleAdmin),
    (Occurrence, OccurrenceAdmin),
    (Operation, OperationAdmin),
    (Endpoint, EndpointAdmin),
    (Incident, IncidentAdmin),
    (AlertRule, AlertRuleAdmin),
    (TaskLog, TaskLogAdmin),
    (Audit, AuditAdmin),
)


def register(site: admin.AdminSite) -> None:
    """Register all pages with an admin site of the project."""
    for model, model_admin in PAGES:
        site.register(model, model_admin)


def unregister(site: admin.AdminSite) -> None:
    """Unregister all pages from an admin site, such as the default one."""
    for model, _model_admin in PAGES:
        site.unregister(model)


register(admin.site)
