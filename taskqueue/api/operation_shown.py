"""An operation as the API shows it, and what one would come to."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from taskqueue.access.permissions import VIEW_ARGUMENTS, VIEW_LEASES
from taskqueue.api.etags import part_of
from taskqueue.api.fields import Anything
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.operations import Estimate, held_count, which_of
from taskqueue.models import Operation
from taskqueue.models.operation import OperationStatus
from taskqueue.monitoring.searching import shown_to

HOW = ("ids", "everything", "arguments_of_unknown")
"""What a stored filter holds besides properties of tasks."""


class OperationShown(serializers.Serializer[Any]):
    """An operation and how far it is."""

    id = serializers.UUIDField()
    verb = serializers.CharField()
    query = serializers.CharField(
        help_text="The search as it was typed, if it was one; values of arguments are redacted "
        "without view_arguments, names of workers without view_lease."
    )
    arguments = serializers.DictField()
    status = serializers.ChoiceField(choices=[each.value for each in OperationStatus])
    is_finished = serializers.BooleanField()
    expected = serializers.IntegerField(
        allow_null=True,
        help_text="What a dry run would have called fitting at its beginning; null: too many to "
        "count.",
    )
    matched = serializers.IntegerField(help_text="Tasks that it has come to.")
    done = serializers.IntegerField(help_text="Those of them to which it was done.")
    error = serializers.CharField(
        help_text="Why it is tried again or failed; of a finished one, how many tasks refused the "
        "terms, and why."
    )
    requested_by = serializers.CharField()
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    progressed_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class Chosen(serializers.Serializer[Any]):
    """Which tasks an operation is about."""

    everything = serializers.BooleanField()
    ids_count = serializers.IntegerField(
        allow_null=True, help_text="How many were chosen one by one; null: none were."
    )
    filter = serializers.DictField(
        child=Anything(),
        help_text="What they have to fit, as a request says it; values of arguments are redacted "
        "without view_arguments, names of workers without view_lease.",
    )


class OperationWhole(OperationShown):
    """With which tasks are meant, and what it will come back to."""

    chosen = Chosen(allow_null=True, help_text="null: another version wrote it.")
    held = serializers.IntegerField(help_text="Tasks in use, which it will come back to.")


class SampleTask(serializers.Serializer[Any]):
    """One of the tasks to which it would be done."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    queue_name = serializers.CharField()
    status = serializers.ChoiceField(choices=[each.value for each in TaskStatus])
    enqueued_at = serializers.DateTimeField()
    error_class = serializers.CharField()


class DryRun(serializers.Serializer[Any]):
    """What an operation would come to at this moment."""

    fitting = serializers.IntegerField(
        help_text="Of ids, the tasks that there are. Else the same as doable: what fits in another "
        "status is not counted."
    )
    doable = serializers.IntegerField(
        help_text="Tasks in a status in which it may be done; whether each can take the terms of "
        "an update is not looked at."
    )
    is_capped = serializers.BooleanField(help_text="Whether there may be more.")
    leaves_out_running = serializers.BooleanField(
        help_text="Whether what runs is left out, for want of the permission to stop."
    )
    held_by_lost = serializers.IntegerField(
        help_text="Tasks that lost workers hold. The verb ends their attempts at once, though the "
        "bodies may still run if a worker's host is only cut off."
    )
    sample = SampleTask(many=True)


def shown(operation: Operation, user: Any) -> dict[str, Any]:
    """An operation in a list, as this user may see it."""
    values = {
        "is_finished": operation.finished_at is not None,
        "query": shown_to(user, operation.query),
    }
    return {
        name: values[name] if name in values else getattr(operation, name)
        for name in OperationShown._declared_fields
    }


def shown_whole(operation: Operation, user: Any) -> dict[str, Any]:
    """An operation by itself."""
    is_open = operation.finished_at is None
    return {
        **shown(operation, user),
        "chosen": _chosen(operation, user),
        "held": held_count(operation) if is_open else 0,
    }


def part(operation: Operation) -> str:
    """What an ETag of it begins with: its status, which people change."""
    return part_of([operation.id, operation.status])


def estimated(found: Estimate) -> dict[str, Any]:
    """What an operation would come to."""
    return {
        "fitting": found.fitting,
        "doable": found.doable,
        "is_capped": found.is_capped,
        "sample": [
            {name: getattr(task, name) for name in SampleTask._declared_fields}
            for task in found.sample
        ],
    }


def _chosen(operation: Operation, user: Any) -> dict[str, Any] | None:
    try:
        which = which_of(operation)
    except (KeyError, ValueError):
        return None
    stored = {name: value for name, value in which.to_json().items() if name not in HOW}
    if "arguments" in stored and not user.has_perm(VIEW_ARGUMENTS):
        stored["arguments"] = {path: [REDACTED] for path in stored["arguments"]}
    if "worker" in stored and not user.has_perm(VIEW_LEASES):
        stored["worker"] = [REDACTED]
    return {
        "everything": which.everything,
        "ids_count": None if which.ids is None else len(which.ids),
        "filter": stored,
    }
