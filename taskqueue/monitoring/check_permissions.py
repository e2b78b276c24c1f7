"""The permissions to view what the checks of the doctor find."""

from __future__ import annotations

from taskqueue.access.permissions import (
    MANAGE_WEBHOOKS,
    VIEW_ALERT_RULES,
    VIEW_LIMITS,
    VIEW_QUEUES,
    VIEW_SCHEDULES,
    VIEW_WORKFLOWS,
)

# By the name of a check, in addition to the permission to view workers.
OF_CHECKS = {
    "queues": VIEW_QUEUES,
    "schedules": VIEW_SCHEDULES,
    "duties": VIEW_SCHEDULES,
    "workflows": VIEW_WORKFLOWS,
    "limits": VIEW_LIMITS,
    "alerts": VIEW_ALERT_RULES,
    "webhooks": MANAGE_WEBHOOKS,
}
