"""Verbs that people use on tasks: cancel, ask to stop, retry. Each is guarded, and audited."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django.db.transaction import atomic

from taskqueue.conf import get_settings
from taskqueue.engine.connections import project_connection
from taskqueue.engine.notify import wake
from taskqueue.engine.wording import wording_for
from taskqueue.exceptions import TaskDoesNotExist, TransitionRefused
from taskqueue.models import Audit, Lease, Task
from taskqueue.payload import storable
from taskqueue.states import FINISHED, PENDING, LeaseStatus, TaskStatus

TRIES = 10
"""How often a cancel follows a task that starts and ends as it looks."""
_TIME = models.DateTimeField()


def cancel(task_id: UUID, *, by: str = "", reason: str = "") -> str:
    """Cancel a task: one that waits ends now, a running one is asked to stop.

    Returns the status that the task has then. Raises `TaskDoesNotExist`, and
    `TransitionRefused` for a finished task.
    """
    connection = project_connection()
    by, reason = storable(by, limit=150), storable(reason, limit=1000)
    for _ in range(TRIES):
        with atomic(using=connection.alias):
            status = _cancel_waiting(task_id, by=by, reason=reason)
            if status is None:
                status = _request_stop(task_id, by=by, reason=reason)
        if status not in PENDING:
            return status
    raise TransitionRefused(f"Task {task_id} changed {TRIES} times while it was cancelled.")


def request_stop(task_id: UUID, *, by: str = "", reason: str = "") -> str:
    """As `cancel`: what waits ends, what runs is asked, then interrupted, then killed."""
    return cancel(task_id, by=by, reason=reason)


def _cancel_waiting(task_id: UUID, *, by: str, reason: str) -> str | None:
    connection = project_connection()
    tasks = Task.objects.using(connection.alias)
    now = wording_for(connection).now(connection)
    before = tasks.filter(id=task_id).values_list("status", flat=True).first()
    kept = get_settings().RETENTION["cancelled"]
    ended = tasks.filter(id=task_id, status__in=PENDING).update(
        status=TaskStatus.CANCELLED,
        finished_at=now,
        error_message=reason,
        prune_after=_prune_after(now, kept),
        holds_unique_key=models.Case(
            models.When(unique_for__in=("kept", "duration"), then=F("holds_unique_key")),
            default=False,
        ),
    )
    if not ended:
        return None
    _audit("cancel", task_id, by=by, reason=reason, before=before or "")
    return TaskStatus.CANCELLED.value


def _prune_after(now: datetime, kept: timedelta | None) -> models.Case:
    """When a task that finishes now may be pruned: never before it releases its key."""
    moment, nothing = models.Value(now, _TIME), models.Value(None, _TIME)
    own = models.ExpressionWrapper(moment + F("retention"), output_field=_TIME)
    held = Q(holds_unique_key=True)
    ends = [
        models.When(held & Q(unique_for="kept"), then=nothing),
        models.When(held & Q(retention__isnull=False, unique_until__gt=own), then="unique_until"),
        models.When(retention__isnull=False, then=own),
    ]
    if kept is None:
        return models.Case(*ends, default=nothing)
    end = now + kept
    ends.append(models.When(held & Q(unique_until__gt=end), then="unique_until"))
    return models.Case(*ends, default=models.Value(end, _TIME))


def _request_stop(task_id: UUID, *, by: str, reason: str) -> str:
    connection = project_connection()
    leases = Lease.objects.using(connection.alias).filter(
        task_id=task_id, status=LeaseStatus.RUNNING
    )
    now = wording_for(connection).now(connection)
    asked = leases.filter(stop_requested_at=None).update(
        stop_requested_at=now, stop_requested_by=by, stop_reason=reason
    )
    status = (
        Task.objects.using(connection.alias)
        .filter(id=task_id)
        .values_list("status", flat=True)
        .first()
    )
    if status is None:
        raise TaskDoesNotExist(f"There is no task {task_id}.")
    if status in FINISHED:
        raise TransitionRefused(f"Task {task_id} has {status} and cannot be cancelled.")
    if asked:
        _audit("stop", task_id, by=by, reason=reason, before=status)
        wake(connection, "stop")
    return str(status)


def retry(task_id: UUID, *, by: str = "", reason: str = "") -> None:
    """Run a finished task again, its failures and crashes forgotten, its attempts counted on.

    Raises `TaskDoesNotExist`, and `TransitionRefused` for a task that is not finished.
    """
    connection = project_connection()
    with atomic(using=connection.alias):
        tasks = Task.objects.using(connection.alias)
        before = tasks.filter(id=task_id).values_list("status", flat=True).first()
        now = wording_for(connection).now(connection)
        again = tasks.filter(id=task_id, status__in=FINISHED).update(
            status=TaskStatus.READY,
            failures=0,
            crashes=0,
            run_after=now,
            ready_at=now,
            started_at=None,
            finished_at=None,
            prune_after=None,
            return_value=None,
            error_class="",
            error_message="",
            deadline_at=None,
            expires_at=None,
        )
        if before is None:
            raise TaskDoesNotExist(f"There is no task {task_id}.")
        if not again:
            raise TransitionRefused(f"Task {task_id} is {before}; only a finished one is retried.")
        _audit(
            "retry",
            task_id,
            by=storable(by, limit=150),
            reason=storable(reason, limit=1000),
            before=before,
        )
        wake(connection, "")


def _audit(verb: str, task_id: UUID, *, by: str, reason: str, before: str) -> None:
    Audit.objects.using(project_connection().alias).create(
        actor=by, verb=verb, subject=str(task_id), reason=reason, before=before
    )
