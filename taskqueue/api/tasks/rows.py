"""A task as lists show it, and as an enqueue answers with it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from taskqueue.access.permissions import VIEW_ARGUMENTS
from taskqueue.api.fields import Anything
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.redaction import ShownArguments, redacted
from taskqueue.models import Task

STATUSES = [status.value for status in TaskStatus]
COLUMNS = (
    "name", "queue_name", "status", "priority", "attempt", "run_after", "enqueued_at", "ready_at",
    "started_at", "finished_at", "unique_key", "error_class",
)  # fmt: skip
"""What is read of the rows of a list."""


class TaskRow(serializers.Serializer[Any]):
    """A task, without what may be large."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    queue_name = serializers.CharField()
    status = serializers.ChoiceField(choices=STATUSES)
    priority = serializers.IntegerField()
    attempts = serializers.IntegerField(help_text="Starts so far.")
    run_after = serializers.DateTimeField()
    enqueued_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    unique_key = serializers.CharField(allow_null=True)
    error_class = serializers.CharField(help_text="Empty: it has not ended with an error.")


class ListedTask(TaskRow):
    """A task of a list, with its arguments where they are asked for."""

    args = serializers.ListField(child=Anything(allow_null=True), allow_null=True, required=False)
    kwargs = serializers.DictField(child=Anything(allow_null=True), allow_null=True, required=False)


class Receipt(serializers.Serializer[Any]):
    """What an enqueue came to.

    Of a task of another type that holds the unique key, who lacks `view_task` is told the id alone.
    """

    id = serializers.UUIDField()
    name = serializers.CharField(allow_null=True)
    status = serializers.ChoiceField(choices=STATUSES, allow_null=True)
    created = serializers.BooleanField(help_text="false: another task holds the unique key.")
    updated = serializers.BooleanField(help_text="Whether that one's arguments were replaced.")
    enqueued_at = serializers.DateTimeField(allow_null=True)
    ready_at = serializers.DateTimeField(allow_null=True)


def row(task: Task) -> dict[str, Any]:
    """The task as a list shows it."""
    return {
        "id": task.id,
        "attempts": task.attempt,
        **{name: getattr(task, name) for name in COLUMNS if name != "attempt"},
    }


def row_with_arguments(task: Task, user: Any) -> dict[str, Any]:
    """The same, and its arguments as this user may see them."""
    return row(task) | arguments(task, user)


def arguments(task: Task, user: Any) -> dict[str, Any]:
    """Without the values of sensitive ones; null where only some may see them, and not this user.

    So it is where no definition of the name is known here, to say which are sensitive.
    """
    shown = redacted(task.name, task.args, task.kwargs)
    if shown is None and user.has_perm(VIEW_ARGUMENTS):
        shown = ShownArguments(task.args, task.kwargs)
    if shown is None:
        return {"args": None, "kwargs": None}
    return {"args": shown.args, "kwargs": shown.kwargs}


def receipt(result: Any) -> dict[str, Any]:
    """What the handle on a task tells of its enqueue."""
    return {
        "id": result.id,
        "name": result.name,
        "status": result.status,
        "created": result.created,
        "updated": result.updated,
        "enqueued_at": result.enqueued_at,
        "ready_at": result.ready_at,
    }


def bare_receipt(result: Any) -> dict[str, Any]:
    """The same of a holder that may not be seen: who it is, since its id is what was asked for."""
    unseen = dict.fromkeys(("name", "status", "enqueued_at", "ready_at"))
    return {"id": result.id, "created": result.created, "updated": result.updated, **unseen}
