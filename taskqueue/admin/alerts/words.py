"""Kinds of alert rules, their scopes and sources in words."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from taskqueue.core.alerts import AlertKind, AlertScope

KINDS: dict[str, Any] = {
    AlertKind.FAILURE.value: _("tasks failed"),
    AlertKind.FAILURE_RATE.value: _("failure rate"),
    AlertKind.QUEUE_LATENCY.value: _("queue latency"),
    AlertKind.QUEUE_DEPTH.value: _("queue depth"),
    AlertKind.QUEUE_UNSERVED.value: _("queue not served"),
    AlertKind.QUEUE_STALLED.value: _("queue stalled"),
    AlertKind.NO_WORKER.value: _("no worker takes tasks"),
    AlertKind.WORKER_LOST.value: _("worker lost"),
    AlertKind.WORKER_TROUBLE.value: _("worker in trouble"),
    AlertKind.WEDGED.value: _("attempt wedged"),
    AlertKind.SCHEDULE_MISSED.value: _("schedule overdue"),
    AlertKind.SCHEDULE_PAUSED.value: _("schedule paused itself"),
    AlertKind.SCHEDULE_TROUBLE.value: _("schedule in trouble"),
    AlertKind.WORKFLOW_FAILED.value: _("workflows failed"),
    AlertKind.WORKFLOW_SLOW.value: _("workflow over its usual time"),
    AlertKind.LIMIT_SATURATED.value: _("limit used up"),
    AlertKind.FAILURE_JUMP.value: _("jump of the failure rate"),
    AlertKind.NEW_ERROR.value: _("new kind of error"),
    AlertKind.LONG_RUN.value: _("attempt runs for long"),
    AlertKind.QUEUE_GROWING.value: _("growing backlog"),
    AlertKind.WORKERS_ABSENT.value: _("tasks for absent workers"),
    AlertKind.TAGS_ABSENT.value: _("tasks for tags that no worker has"),
    AlertKind.PARKED.value: _("tasks parked"),
    AlertKind.DOCTOR.value: _("problem found by the doctor"),
    AlertKind.HEARTBEAT.value: _("heartbeat"),
}
SCOPES: dict[str, Any] = {
    AlertScope.ALL.value: _("everything"),
    AlertScope.QUEUE.value: _("queue"),
    AlertScope.NAME.value: _("task name"),
    AlertScope.SCHEDULE.value: _("schedule"),
    AlertScope.WORKFLOW.value: _("workflow"),
    AlertScope.WORKER.value: _("worker"),
    AlertScope.LIMIT.value: _("limit"),
}
