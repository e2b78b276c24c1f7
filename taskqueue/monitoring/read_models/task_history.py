"""One task with its attempts, related tasks, audit entries and possible actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet

from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES, VIEW_WORKFLOWS
from taskqueue.core.states import LeaseStatus
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.limits import is_halted
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.lost import was_lost
from taskqueue.engine.result_parts import parts_of
from taskqueue.engine.verbs import VERBS
from taskqueue.models import Audit, Lease, Schedule, Step, Task
from taskqueue.monitoring.read_models.attempt import (
    AttemptFailure,
    RunningAttempt,
    ShownAttempt,
    failures_of,
    shown_attempts,
)
from taskqueue.monitoring.read_models.audit import ShownAuditEntry
from taskqueue.monitoring.read_models.base import (
    Viewer,
    about,
    from_rows,
)
from taskqueue.monitoring.read_models.part import ShownPart, shown_parts
from taskqueue.monitoring.read_models.task import TaskDetails, computed, task_as
from taskqueue.results.reading import cancellation_of

MOST_ATTEMPTS, MOST_RETRIES = 20, 20
# The most attempts, parts of results and audit entries of a history.
MOST_ROWS = 100
RELEASE = VERBS["task", "release"]


@dataclass(frozen=True, kw_only=True)
class ShownCancellation:
    """The person who cancelled a task or asked it to stop, and the reason."""

    by: str = about("Empty if nobody did, as for a task that expired.")
    reason: str


@dataclass(frozen=True, kw_only=True)
class ShownTask(TaskDetails):
    """A task with its attempts, its kin and the verbs that it allows; durations are seconds."""

    schedule: str | None = about("The name of the schedule that enqueued it.")
    workflow: UUID | None = about(
        "The workflow that it belongs to; null also if you lack the permission to see workflows."
    )
    step: str = about("The name of its step there.")
    place: int | None = about("Which of the members of that step it is.")
    retries: list[UUID] = about("The newest tasks made from it with other arguments.")
    running: list[RunningAttempt] | None = about("null: you lack the permission to see attempts.")
    errors: list[AttemptFailure] | None = about(
        f"Oldest first, of the last {MOST_ATTEMPTS} attempts; null: you lack the permission."
    )
    cancellation: ShownCancellation | None = about(
        "null: nobody cancelled it or asked it to stop, or you lack the permission to see it."
    )
    worker_lost: bool = about(
        "Whether the worker of its last attempt is lost. While the task is running: stop, cancel"
        " and retry end the attempt at once, though its body may still run if the worker's host is"
        " only cut off. Afterwards: that somebody ended it so."
    )
    can: list[str] = about("Verbs that you may use on it now.", choices=[*TASK_VERBS, RELEASE.name])


@dataclass(frozen=True, kw_only=True)
class TaskHistory(ShownTask):
    """A task with its attempts and with what people did to it."""

    retries: list[UUID] = about("All tasks made from it with other arguments, the newest first.")
    latest_attempts: list[ShownAttempt] = about("Oldest first.")
    result_parts: list[ShownPart] = about(
        f"What the latest attempt has written of its result, up to {MOST_ROWS} parts."
    )
    audit: list[ShownAuditEntry] = about("Oldest first.")


Shown = TypeVar("Shown", bound=ShownTask)


def shown_task(task: Task, viewer: Viewer) -> ShownTask:
    """Return the task with everything related to it, by a few queries."""
    return _shown(ShownTask, task, viewer, retries=list(_retries(task)[:MOST_RETRIES]))


def task_history(task: Task, viewer: Viewer) -> TaskHistory:
    """Return the task with its latest attempts, in full, and the first audit entries."""
    alias = database_alias()
    leases = Lease.objects.using(alias).filter(task_id=task.id).defer("return_value")
    entries = Audit.objects.using(alias).filter(noun="task", subject=str(task.id))
    return _shown(
        TaskHistory,
        task,
        viewer,
        retries=list(_retries(task)),
        latest_attempts=shown_attempts(leases.order_by("-attempt")[:MOST_ROWS], task.name, viewer)[
            ::-1
        ],
        result_parts=shown_parts(parts_of(task.id, task.attempt)[:MOST_ROWS]),
        audit=from_rows(ShownAuditEntry, entries.order_by("id")[:MOST_ROWS]),
    )


def _shown(
    model: type[Shown], task: Task, viewer: Viewer, *, retries: list[UUID], **values: Any
) -> Shown:
    attempts = running = errors = None
    if viewer.has_perm(VIEW_LEASES):
        leases = Lease.objects.using(database_alias()).filter(task_id=task.id)
        lean = leases.defer("traceback", "return_value", "checkpoint").order_by("-attempt")
        attempts = list(lean[:MOST_ATTEMPTS])[::-1]
        holding = [lease for lease in attempts if lease.status == LeaseStatus.RUNNING]
        running, errors = from_rows(RunningAttempt, holding), failures_of(task, attempts)
    return task_as(
        model,
        task,
        viewer,
        **values,
        **computed(task),
        schedule=_schedule(task),
        **_step(task, viewer),
        retries=retries,
        running=running,
        errors=errors,
        cancellation=_cancellation(task, attempts, viewer),
        worker_lost=was_lost(project_connection(), task, attempts),
        can=_verbs(task, viewer),
    )


def _verbs(task: Task, viewer: Viewer) -> list[str]:
    """Return the names of the verbs that the viewer may use on the task in its current state."""
    found = [verb.name for verb in TASK_VERBS.values() if verb.is_for_task(viewer, task)]
    return [*found, *([RELEASE.name] if RELEASE.is_for(viewer) and is_halted(task) else [])]


def _cancellation(
    task: Task, attempts: Sequence[Lease] | None, viewer: Viewer
) -> ShownCancellation | None:
    """Return it for viewers who may see the attempts and the audit, which contain it."""
    if attempts is None or not viewer.has_perm(VIEW_AUDITS):
        return None
    cancellation = cancellation_of(task, attempts)
    return cancellation and ShownCancellation(**cancellation._asdict())


def _schedule(task: Task) -> str | None:
    """Return its name at that time, or its present one."""
    if task.schedule_id is None:
        return None
    name = task.options.get("schedule")
    if name is None:
        rows = Schedule.objects.using(database_alias()).filter(id=task.schedule_id)
        name = rows.values_list("name", flat=True).first()
    return None if name is None else str(name)


def _step(task: Task, viewer: Viewer) -> dict[str, Any]:
    """Return its place in a workflow."""
    found = None
    if task.step_id is not None and viewer.has_perm(VIEW_WORKFLOWS):
        steps = Step.objects.using(database_alias()).filter(id=task.step_id)
        found = steps.values_list("workflow_id", "name").first()
    workflow, step = found or (None, "")
    return {"workflow": workflow, "step": step, "place": None if found is None else task.place}


def _retries(task: Task) -> QuerySet[Task, UUID]:
    """Return the ids of the tasks made from it, newest first."""
    kin = Task.objects.using(database_alias()).filter(retry_of_id=task.id)
    return kin.order_by("-id").values_list("id", flat=True)
