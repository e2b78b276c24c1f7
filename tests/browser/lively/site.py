"""The whole shop."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from random import Random

from django.utils import timezone

from taskqueue import control
from taskqueue.models import Task
from tests.browser.lively import fleet, rollups, rules, tasks
from tests.browser.lively.workflows import Flows, fill_workflows

SEED = 5


@dataclass(frozen=True)
class Shop:
    """The tasks and workflows that have pages of their own."""

    report: Task
    """It runs, and failed once."""
    failed: Task
    planned: Task
    succeeded: Task
    flows: Flows


def fill(count: int = 900, *, now: datetime | None = None) -> Shop:
    """Fill an empty database; `count` tasks have ended."""
    now, random = now or timezone.now(), Random(SEED)
    fleet.fill_workers(now)
    # First: their workers take what else is due.
    flows = fill_workflows()
    maker = tasks.Maker(now, random, fleet.WORKERS)
    tasks.fill_history(maker, count)
    tasks.fill_waiting(maker)
    report = tasks.fill_running(maker)
    maker.rows.insert()
    rollups.fill_rollups(now, random)
    fleet.fill_queues()
    fleet.fill_schedules(now)
    fleet.fill_operations(now, random)
    rules.fill_limits()
    rules.fill_groups(now)
    rules.fill_alerts(now)
    rules.fill_webhooks()
    _act()
    found = {
        status: Task.objects.filter(status=status, step=None).order_by("-id") for status in STATUSES
    }
    failed, planned, succeeded = (found[status][0] for status in STATUSES)
    return Shop(report, failed, planned, succeeded, flows)


STATUSES = ("failed", "scheduled", "succeeded")


def _act() -> None:
    """Act by hand, for the audit."""
    planned = Task.objects.filter(status="scheduled").order_by("id")[0]
    control.update(planned.id, {"priority": 5}, by="lee", reason="the vip segment goes first")
    ready = Task.objects.filter(status="ready", queue_name="video").order_by("id")[0]
    control.cancel(ready.id, by="ann", reason="the film was replaced")
