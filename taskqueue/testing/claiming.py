"""Claims of the workers of a test, which have every tag that tasks require."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import get_settings
from taskqueue.core.states import TaskStatus
from taskqueue.models import Task
from taskqueue.models.task import Route
from taskqueue.worker.claims import Claims
from taskqueue.worker.quotas import QueueQuotas

HOST = "testing"


def claims_of(name: str, quotas: QueueQuotas, connection: BaseDatabaseWrapper) -> Claims:
    """Return the claims of the worker with this name."""
    return Claims(
        quotas, worker_name=name, slots=1, lease_duration=get_settings().LEASE_DURATION, host=HOST,
        tags=required_tags(connection),
    )  # fmt: skip


def required_tags(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the tags that ready tasks require."""
    rows = Task.objects.using(connection.alias).filter(
        route=Route.PARTITION, status=TaskStatus.READY
    )
    limits = rows.order_by().values_list("limits", flat=True)
    return sorted({tag for each in limits for tag in (each or {}).get("tags", ())})
