"""A task with all there is to say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from rest_framework import serializers

from taskqueue.access.authority import NEEDED, verbs_for
from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES
from taskqueue.api.etags import part_of
from taskqueue.api.fields import Anything
from taskqueue.api.tasks.bodies import is_exposed
from taskqueue.api.tasks.rows import ListedTask, arguments, row
from taskqueue.core.states import FINISHED, LeaseStatus, TaskStatus
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.abandoned import was_lost
from taskqueue.engine.control.mutable_options import COLUMNS as TERM_COLUMNS
from taskqueue.models import Lease, Schedule, Task
from taskqueue.results.reading import cancellation_of, did_not_succeed, failure_of, row_of

MOST_ATTEMPTS, MOST_RETRIES = 20, 20
MAKING = ("retry_with", "duplicate")
VERBS = [verb for verb in NEEDED if verb != "enqueue"]
PLAIN = (
    "failures", "crashes", "max_attempts", "max_crashes", "deadline_at", "expires_at",
    "unique_scope", "unique_for", "unique_until", "holds_unique_key", "workers", "worker_names",
    "broadcast", "open_slots", "running_leases", "successes", "metadata", "nominal_at",
    "error_message", "parked_at", "prune_after",
)  # fmt: skip
"""Columns that are shown as they are."""
DURATIONS = ("crash_delay", "lease_duration", "ping_interval", "retention")
STEPS = (
    "status", "attempt", "attempts_before_retry", "args", "kwargs", "run_after", "deadline_at",
    "expires_at", "enqueued_at", "finished_at", "options", *TERM_COLUMNS,
)  # fmt: skip
"""What If-Match is about: how far a body says it is changes by itself, and hinders nobody."""


class AttemptFailed(serializers.Serializer[Any]):
    """Why an attempt did not succeed."""

    attempt = serializers.IntegerField()
    worker_name = serializers.CharField()
    status = serializers.ChoiceField(choices=[status.value for status in LeaseStatus])
    exception_class_path = serializers.CharField()
    message = serializers.CharField()
    finished_at = serializers.DateTimeField(allow_null=True)


class CancellationShown(serializers.Serializer[Any]):
    """The person who cancelled a task or asked it to stop, and the reason."""

    by = serializers.CharField(help_text="Empty where nobody did, as for a task that expired.")
    reason = serializers.CharField()


class AttemptHeld(serializers.Serializer[Any]):
    """An attempt that runs."""

    attempt = serializers.IntegerField()
    worker_name = serializers.CharField()
    claimed_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True, help_text="null: it is claimed only.")
    progress = serializers.FloatField(allow_null=True, help_text="Percent.")
    progress_message = serializers.CharField()
    stop_requested_at = serializers.DateTimeField(allow_null=True)
    stop_requested_by = serializers.CharField()
    stop_reason = serializers.CharField()
    stop_seen_at = serializers.DateTimeField(allow_null=True)
    wedged_at = serializers.DateTimeField(allow_null=True, help_text="Since when it seems to hang.")


HELD = tuple(name for name in map(str, AttemptHeld().fields) if name != "worker_name")


class TaskWhole(ListedTask):
    """A task with its options as they were when it was enqueued; durations are seconds."""

    args = serializers.ListField(
        child=Anything(allow_null=True), allow_null=True,
        help_text="Without sensitive values; null: hidden, for want of a permission.",
    )  # fmt: skip
    kwargs = serializers.DictField(child=Anything(allow_null=True), allow_null=True)
    is_finished = serializers.BooleanField()
    return_value = Anything(allow_null=True, help_text="null unless it has succeeded.")
    error_message = serializers.CharField()
    failures = serializers.IntegerField()
    crashes = serializers.IntegerField()
    max_attempts = serializers.IntegerField()
    max_crashes = serializers.IntegerField()
    crash_delay = serializers.FloatField()
    backoff = serializers.DictField(child=Anything(allow_null=True), allow_null=True)
    retry_for = serializers.ListField(child=serializers.CharField(), allow_null=True)
    give_up_on = serializers.ListField(child=serializers.CharField())
    timeout = serializers.FloatField(allow_null=True)
    deadline_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    lease_duration = serializers.FloatField(allow_null=True)
    ping_interval = serializers.FloatField(allow_null=True)
    retention = serializers.FloatField(allow_null=True)
    prune_after = serializers.DateTimeField(allow_null=True)
    unique_scope = serializers.CharField(
        help_text="Within which its key is unique; empty if it has none."
    )
    unique_for = serializers.CharField(help_text='"duration": until `unique_until`.')
    unique_until = serializers.DateTimeField(allow_null=True)
    holds_unique_key = serializers.BooleanField()
    workers = serializers.IntegerField()
    worker_names = serializers.ListField(child=serializers.CharField(), allow_null=True)
    broadcast = serializers.BooleanField()
    open_slots = serializers.IntegerField()
    running_leases = serializers.IntegerField()
    successes = serializers.IntegerField()
    metadata = serializers.DictField(child=Anything(allow_null=True))
    parked_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when no worker that it met knew its type."
    )
    schedule = serializers.CharField(allow_null=True, help_text="The one that made it.")
    nominal_at = serializers.DateTimeField(allow_null=True)
    retry_of = serializers.UUIDField(allow_null=True)
    retries = serializers.ListField(
        child=serializers.UUIDField(), help_text="Made from it with other arguments; the newest."
    )
    running = AttemptHeld(
        many=True, allow_null=True, help_text="null: hidden, for want of a permission."
    )
    errors = AttemptFailed(  # type: ignore[assignment]
        many=True, allow_null=True,
        help_text=f"Oldest first, of the last {MOST_ATTEMPTS} attempts; null: hidden.",
    )  # fmt: skip
    cancellation = CancellationShown(
        allow_null=True,
        help_text="null: nobody cancelled it or asked it to stop, or it is hidden from you.",
    )
    worker_lost = serializers.BooleanField(
        help_text="Whether the worker of its last attempt is lost. While the task is running: stop,"
        " cancel and retry end the attempt at once, though its body may still run if the worker's"
        " host is only cut off. Afterwards: that somebody ended it so."
    )
    can = serializers.ListField(
        child=serializers.ChoiceField(choices=VERBS),
        help_text="What you may do to it as it stands.",
    )


def whole(task_id: UUID, user: Any) -> dict[str, Any]:
    """The task as it is now. Raises `TaskDoesNotExist`."""
    return shown(row_of(task_id), user)


def shown(task: Task, user: Any) -> dict[str, Any]:
    """The row with what belongs to it, by a few queries."""
    attempts = _attempts(task) if user.has_perm(VIEW_LEASES) else None
    return {
        **row(task),
        **arguments(task, user),
        **{name: getattr(task, name) for name in PLAIN},
        **{name: _seconds(getattr(task, name)) for name in DURATIONS},
        **_of_snapshot(task.options),
        "is_finished": task.status in FINISHED,
        "return_value": task.return_value if task.status == TaskStatus.SUCCEEDED else None,
        "schedule": _schedule(task),
        "retry_of": task.retry_of_id,
        "retries": _retries(task),
        "running": None if attempts is None else _running(attempts),
        "errors": None if attempts is None else _errors(task, attempts),
        "cancellation": _cancellation(task, attempts, user),
        "worker_lost": was_lost(project_connection(), task, attempts),
        "can": _can(task, user),
    }


def _cancellation(task: Task, attempts: Sequence[Lease] | None, user: Any) -> dict[str, str] | None:
    """For those who may see what tells of it: attempts, and the audit."""
    if attempts is None or not user.has_perm(VIEW_AUDITS):
        return None
    found = cancellation_of(task, attempts)
    return None if found is None else found._asdict()


def steps_of(task: Task) -> str:
    """The part of the ETag that stands for what people and workers have made of it."""
    return part_of([getattr(task, name) for name in STEPS])


def _can(task: Task, user: Any) -> list[str]:
    """What makes another task of its type is for types marked `api=True` alone."""
    hidden = () if is_exposed(task.name) else MAKING
    return [verb for verb in verbs_for(task, user) if verb not in hidden]


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


def _of_snapshot(options: Mapping[str, Any]) -> dict[str, Any]:
    """What of its options travels with it."""
    return {
        "backoff": options.get("backoff"),
        "retry_for": options.get("retry_for"),
        "give_up_on": options.get("give_up_on", []),
        "timeout": options.get("timeout"),
    }


def _schedule(task: Task) -> str | None:
    """Its name as it was then, or as it is now."""
    if task.schedule_id is None:
        return None
    name = task.options.get("schedule")
    if name is None:
        rows = Schedule.objects.using(database_alias()).filter(id=task.schedule_id)
        name = rows.values_list("name", flat=True).first()
    return None if name is None else str(name)


def _retries(task: Task) -> list[UUID]:
    kin = Task.objects.using(database_alias()).filter(retry_of_id=task.id)
    return list(kin.order_by("-id").values_list("id", flat=True)[:MOST_RETRIES])


def _attempts(task: Task) -> list[Lease]:
    """The latest, the oldest of them first."""
    leases = Lease.objects.using(database_alias()).filter(task_id=task.id)
    lean = leases.defer("traceback", "return_value").order_by("-attempt")
    return list(lean[:MOST_ATTEMPTS])[::-1]


def _running(attempts: Sequence[Lease]) -> list[dict[str, Any]]:
    return [
        {"worker_name": each.worker_id, **{name: getattr(each, name) for name in HELD}}
        for each in attempts
        if each.status == LeaseStatus.RUNNING
    ]


def _errors(task: Task, attempts: Sequence[Lease]) -> list[dict[str, Any]]:
    """Why attempts failed; last, what the task itself ended with where no attempt says it."""
    found = [
        {
            "attempt": each.attempt,
            "worker_name": each.worker_id,
            "status": each.status,
            **failure_of(each)._asdict(),
            "finished_at": each.finished_at,
        }
        for each in attempts
        if did_not_succeed(each)
    ]
    paths = {each["exception_class_path"] for each in found}
    if task.error_class and task.error_class not in paths:
        found.append({
            "attempt": task.attempt,
            "worker_name": "",
            "status": LeaseStatus.FAILED.value,
            "exception_class_path": task.error_class,
            "message": task.error_message,
            "finished_at": task.finished_at,
        })  # fmt: skip
    return found
