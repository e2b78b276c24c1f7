"""Tasks: as lists, exports and pages show them, each with the fields of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import VIEW_AUDITS, VIEW_LEASES, VIEW_WORKFLOWS
from taskqueue.core.states import FINISHED, LeaseStatus, TaskStatus
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import SNAPSHOT
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.limits import is_halted
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.lost import was_lost
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
    columns_of,
    from_row,
    from_rows,
    visible_arguments,
)
from taskqueue.monitoring.read_models.placement import (
    ShownLimiter,
    ShownSequence,
    ShownTenant,
    placement_of,
)
from taskqueue.results.reading import cancellation_of
from taskqueue.tracing.metadata import trace_url_of

STATUSES = [status.value for status in TaskStatus]
MOST_ATTEMPTS, MOST_RETRIES = 20, 20
# Attempts, and audit entries, of a history.
MOST_ROWS = 100
# Fields that stand in the column `options`, with the value of one that is absent.
IN_OPTIONS = {option.name: option_to_json(option.default) for option in SNAPSHOT}


RELEASE = VERBS["task", "release"]


@dataclass(frozen=True, kw_only=True)
class TaskSummary:
    """A task in a list, without what may be large."""

    id: UUID
    name: str
    queue_name: str
    status: str = about(choices=STATUSES)
    priority: int
    attempts: int = about("Starts so far.", column="attempt")
    failures: int
    crashes: int = about(label=_("Crashes"))
    run_after: datetime
    enqueued_at: datetime
    ready_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    unique_key: str | None = about(label=_("Unique key"))
    error_class: str = about("Empty: it has not ended with an error.")


@dataclass(frozen=True, kw_only=True)
class ListedTask(TaskSummary):
    """A task in a list, with its arguments if they are asked for."""

    args: list[Any] | None = about(
        "Without sensitive values; null: you lack the permission to see arguments.",
        empty="hidden: no definition of this name is known here",
    )
    kwargs: dict[str, Any] | None = about(empty="hidden: no definition of this name is known here")


@dataclass(frozen=True, kw_only=True)
class ExportedTask(ListedTask):
    """A task in an export."""

    error_message: str
    metadata: dict[str, Any] = about(label=_("Metadata"))
    schedule_id: int | None = about("The schedule that enqueued it.")
    nominal_at: datetime | None = about("The time of the schedule that it stands for.")
    retry_of: UUID | None = about(
        "The task that was retried with other arguments as this one.", column="retry_of_id"
    )


@dataclass(frozen=True, kw_only=True)
class TaskDetails(ExportedTask):
    """A task with all its columns and its options as they were when it was enqueued."""

    is_finished: bool
    return_value: Any = about("null unless it has succeeded.")
    max_attempts: int
    max_crashes: int
    crash_delay: timedelta = about(label=_("Delay after a crash"))
    backoff: dict[str, Any] | None
    retry_for: list[str] | None
    retry_on: str = about("`any` worker takes the next attempt, or the `same` one.")
    give_up_on: list[str]
    timeout: float | None
    timeout_from: str = about("`start`, or `progress`, which lets the time limit begin anew.")
    stop_grace: float | None
    kill_grace: float | None
    deadline_at: datetime | None = about(label=_("Deadline"))
    expires_at: datetime | None = about(label=_("Expires"))
    lease_duration: timedelta | None = about(label=_("Lease"))
    ping_interval: timedelta | None
    retention: timedelta | None = about(label=_("Retention"))
    prune_after: datetime | None = about(label=_("Kept until"))
    options: dict[str, Any] = about(label=_("Other options"))
    unique_scope: str = about(
        "Its key is unique within this scope; empty: it has no key.", label=_("Unique within")
    )
    unique_for: str = about('"duration": until `unique_until`.', label=_("Unique for"))
    unique_until: datetime | None = about(label=_("Key held until"))
    holds_unique_key: bool = about(label=_("Holds the key"))
    concurrency: list[ShownLimiter] = about(
        "The limits of concurrency that hold for it.", label=_("Limits")
    )
    rate: list[ShownLimiter] = about("The rates that hold for it.", label=_("Rates"))
    fair: ShownTenant | None = about(label=_("Tenant"))
    sequence: ShownSequence | None = about(label=_("Sequence"))
    requires: list[str] = about("The tags that a worker must have.", label=_("Required tags"))
    cost: int = about("Tokens of its rates, or of its tenant's share.")
    workers: int
    worker_names: list[str] | None
    broadcast: bool
    open_slots: int
    running_leases: int
    successes: int
    parked_at: datetime | None = about("Since when no worker that it met knew its type.")
    trace_url: str | None = about(
        "The address of its trace, by the setting TRACE_URL; null: it carries none.",
        label=_("Trace"),
    )


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
    audit: list[ShownAuditEntry] = about("Oldest first.")


T = TypeVar("T", bound=TaskSummary)
Shown = TypeVar("Shown", bound=ShownTask)


def task_columns(model: type[TaskSummary]) -> list[str]:
    """The columns that a summary, a listed or an exported task is made of."""
    return list(columns_of(model).values())


def task_as(model: type[T], task: Task, viewer: Viewer, **values: Any) -> T:
    """Make any of these models of a row; `values` are those of fields that are not columns."""
    if issubclass(model, ListedTask):
        call = visible_arguments(task.name, task.args, task.kwargs, viewer)
        values["args"], values["kwargs"] = (None, None) if call is None else call
    return from_row(model, task, **values)


def task_details(task: Task, viewer: Viewer) -> TaskDetails:
    """The task with all its columns, without a query."""
    return task_as(TaskDetails, task, viewer, **_computed(task))


def shown_task(task: Task, viewer: Viewer) -> ShownTask:
    """The task with what belongs to it, by a few queries."""
    return _shown(ShownTask, task, viewer, retries=list(_retries(task)[:MOST_RETRIES]))


def task_history(task: Task, viewer: Viewer) -> TaskHistory:
    """The same with the latest attempts, whole, and the first audit entries."""
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
        **_computed(task),
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
    """The names of the verbs that the viewer may use on the task as it stands."""
    found = [verb.name for verb in TASK_VERBS.values() if verb.is_for_task(viewer, task)]
    return [*found, *([RELEASE.name] if RELEASE.is_for(viewer) and is_halted(task) else [])]


def _computed(task: Task) -> dict[str, Any]:
    """The values of `TaskDetails` that are not columns."""
    return {
        "is_finished": task.status in FINISHED,
        "return_value": task.return_value if task.status == TaskStatus.SUCCEEDED else None,
        **{name: task.options.get(name, absent) for name, absent in IN_OPTIONS.items()},
        **placement_of(task.limits or {}),
        "trace_url": trace_url_of(task.metadata),
    }


def _cancellation(
    task: Task, attempts: Sequence[Lease] | None, viewer: Viewer
) -> ShownCancellation | None:
    """For those who may see the attempts and the audit, which tell of it."""
    if attempts is None or not viewer.has_perm(VIEW_AUDITS):
        return None
    cancellation = cancellation_of(task, attempts)
    return cancellation and ShownCancellation(**cancellation._asdict())


def _schedule(task: Task) -> str | None:
    """Its name as it was then, or as it is now."""
    if task.schedule_id is None:
        return None
    name = task.options.get("schedule")
    if name is None:
        rows = Schedule.objects.using(database_alias()).filter(id=task.schedule_id)
        name = rows.values_list("name", flat=True).first()
    return None if name is None else str(name)


def _step(task: Task, viewer: Viewer) -> dict[str, Any]:
    """Where it stands in a workflow."""
    found = None
    if task.step_id is not None and viewer.has_perm(VIEW_WORKFLOWS):
        steps = Step.objects.using(database_alias()).filter(id=task.step_id)
        found = steps.values_list("workflow_id", "name").first()
    workflow, step = found or (None, "")
    return {"workflow": workflow, "step": step, "place": None if found is None else task.place}


def _retries(task: Task) -> QuerySet[Task, UUID]:
    """The ids of the tasks made from it, the newest first."""
    kin = Task.objects.using(database_alias()).filter(retry_of_id=task.id)
    return kin.order_by("-id").values_list("id", flat=True)
