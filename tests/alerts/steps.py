"""Playing the duty of alerts by hand, with time that moves by changing rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import F

from taskqueue import alerts
from taskqueue.alerts.duty import look
from taskqueue.declarations.own_tasks import MAIL
from taskqueue.models import AlertRule, Incident, Task

MOMENTS = (
    (AlertRule, ("next_at", "evaluated_at", "told_at", "silenced_until")),
    (Incident, ("began_at", "raised_at", "ended_at", "notified_at")),
)


def look_now() -> bool:
    """Look at all rules, whether they are due or not."""
    AlertRule.objects.filter(next_at__isnull=False).update(next_at=F("created_at"))
    return look(connection)


def pass_time(seconds: float) -> None:
    """Let so many seconds pass for rules and incidents."""
    for model, columns in MOMENTS:
        model.objects.update(  # type: ignore[attr-defined]
            **{column: F(column) - timedelta(seconds=seconds) for column in columns}
        )


def make_rule(name: str = "rule", kind: str = "worker_trouble", **fields: Any) -> AlertRule:
    """A rule that mails to one address, unless it cannot or the fields say otherwise."""
    if kind != "heartbeat":
        fields.setdefault("mail", ["ops@example.org"])
    return alerts.create(name, kind=kind, **fields)


def mails() -> list[list[str]]:
    """What each message tells, in the order in which they were enqueued."""
    tasks = Task.objects.filter(name=MAIL["name"]).order_by("id")
    return [[what for _, what in task.kwargs["news"]] for task in tasks]


def open_incidents() -> list[tuple[str, str]]:
    """The subjects and statuses of incidents that are open."""
    rows = Incident.objects.filter(ended_at=None).order_by("subject")
    return list(rows.values_list("subject", "status"))
