"""Tasks as lists, exports and pages show them; each model extends the previous one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.option_forms import option_to_json
from taskqueue.declarations.options import SNAPSHOT
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import (
    Viewer,
    about,
    columns_of,
    from_row,
    visible_arguments,
)
from taskqueue.monitoring.read_models.placement import (
    ShownLimiter,
    ShownSequence,
    ShownTenant,
    placement_of,
)
from taskqueue.tracing.metadata import trace_url_of

STATUSES = [status.value for status in TaskStatus]
# Fields stored in the column `options`, with the value of an absent one.
IN_OPTIONS = {option.name: option_to_json(option.default) for option in SNAPSHOT}


@dataclass(frozen=True, kw_only=True)
class TaskSummary:
    """A task in a list, without columns that may be large."""

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
    snooze_on: list[str] | None = about("Errors that do not count.")
    max_memory: int | None = about("Megabytes that the process of its body may use.")
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


T = TypeVar("T", bound=TaskSummary)


def task_columns(model: type[TaskSummary]) -> list[str]:
    """Return the columns from which a summary, a listed or an exported task is made."""
    return list(columns_of(model).values())


def task_as(model: type[T], task: Task, viewer: Viewer, **values: Any) -> T:
    """Make any of these models from a row; `values` are those of fields that are not columns."""
    if issubclass(model, ListedTask):
        call = visible_arguments(task.name, task.args, task.kwargs, viewer)
        values["args"], values["kwargs"] = (None, None) if call is None else call
    return from_row(model, task, **values)


def task_details(task: Task, viewer: Viewer) -> TaskDetails:
    """Return the task with all of its columns, without a query."""
    return task_as(TaskDetails, task, viewer, **computed(task))


def computed(task: Task) -> dict[str, Any]:
    """Return the values of `TaskDetails` that are not columns."""
    return {
        "is_finished": task.status in FINISHED,
        "return_value": task.return_value if task.status == TaskStatus.SUCCEEDED else None,
        **{name: task.options.get(name, absent) for name, absent in IN_OPTIONS.items()},
        **placement_of(task.limits or {}),
        "trace_url": trace_url_of(task.metadata),
    }
