"""The permissions of each verb, written apart from the package's table, and what tests give it.

The matrices of the admin and the REST API take them from here: a new verb needs a line in `NEEDS`.
"""

from __future__ import annotations

from typing import Any

from taskqueue.core.states import TaskStatus
from taskqueue.engine.control.verb import TaskVerb

MAKING = "edit_schedules enqueue"
NEEDS = {
    ("task", "enqueue"): "enqueue",
    ("task", "retry"): "operate",
    ("task", "retry_with"): "operate enqueue",
    ("task", "run_now"): "operate",
    ("task", "reschedule"): "operate",
    ("task", "update"): "operate",
    ("task", "cancel"): "operate",
    ("task", "stop"): "stop",
    ("task", "duplicate"): "operate enqueue",
    ("task", "delete"): "purge",
    ("task", "release"): "operate",
    ("queue", "pause"): "control_queues",
    ("queue", "resume"): "control_queues",
    ("queue", "pause_all"): "control_queues",
    ("queue", "resume_all"): "control_queues",
    ("definition", "pause"): "control_queues",
    ("definition", "resume"): "control_queues",
    ("queue", "limit"): "control_queues",
    ("queue", "delete"): "control_queues",
    ("limit", "set"): "control_queues",
    ("limit", "reset"): "control_queues",
    ("worker", "quiet"): "stop",
    ("worker", "resume"): "stop",
    ("worker", "change"): "stop",
    ("worker", "stop"): "stop",
    ("worker", "kill"): "stop",
    ("schedule", "create"): MAKING,
    ("schedule", "edit"): MAKING,
    ("schedule", "disable"): "edit_schedules",
    ("schedule", "pause"): "edit_schedules",
    ("schedule", "resume"): MAKING,
    ("schedule", "run_now"): MAKING,
    ("schedule", "delete"): "edit_schedules",
    ("schedule", "remove"): "",
    ("operation", "start"): "",
    ("operation", "cancel"): "",
    ("workflow", "enqueue"): "enqueue",
    ("workflow", "cancel"): "operate",
    ("workflow", "pause"): "operate",
    ("workflow", "resume"): "operate",
    ("workflow", "retry"): "operate",
    ("workflow", "resolve"): "operate",
    ("workflow", "delete"): "purge",
    ("group", "fire"): "operate",
    ("alert", "acknowledge"): "operate",
    ("alert_rule", "create"): "manage_alerts",
    ("alert_rule", "edit"): "manage_alerts",
    ("alert_rule", "silence"): "manage_alerts",
    ("alert_rule", "unsilence"): "manage_alerts",
    ("alert_rule", "test"): "manage_alerts",
    ("alert_rule", "delete"): "manage_alerts",
    ("alert_rule", "remove"): "",
    **{
        ("webhook", verb): "manage_webhooks"
        for verb in (
            "create",
            "edit",
            "enable",
            "disable",
            "rotate",
            "test",
            "redeliver",
            "replay",
            "delete",
        )
    },
    ("search", "create"): "view_task",
    ("search", "edit"): "view_task",
    ("search", "delete"): "view_task",
    ("", "prune"): "",
}
"""By noun and verb; an operation needs what its verb needs."""
ROWS = ("failed", "scheduled", "ready", "running")
ARGUMENTS: dict[str, Any] = {"moment": 300, "changes": {"priority": 7}}
"""A value for a parameter, by its kind, as JSON."""


def row_for(verb: TaskVerb) -> str:
    """Return the name of a task of `tests.admin.everything` that allows the verb."""
    return next(row for row in ROWS if TaskStatus(row) in verb.statuses)


def arguments_for(verb: TaskVerb) -> dict[str, Any]:
    """Return arguments of the verb as JSON."""
    return {parameter.name: ARGUMENTS[parameter.kind] for parameter in verb.parameters}
