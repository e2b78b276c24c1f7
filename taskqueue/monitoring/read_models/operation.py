"""Operations: one verb done to many tasks in the background, and a dry run of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskqueue.access.permissions import VIEW_ARGUMENTS, VIEW_LEASES
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.operations.asking import held_count, which_of
from taskqueue.engine.operations.walking import Estimate
from taskqueue.models import Operation
from taskqueue.models.operation import OperationStatus
from taskqueue.monitoring.read_models.base import Viewer, about, from_row
from taskqueue.monitoring.searching.search import shown_to

# Seconds after which the pace is known.
SOONEST_PACE = 1.0
# Keys of a stored filter that are not properties of tasks.
HOW = ("ids", "everything", "arguments_of_unknown")


@dataclass(frozen=True, kw_only=True)
class ShownOperation:
    """An operation and its progress."""

    id: UUID
    verb: str
    query: str = about(
        "The search as it was typed, if it was one; values of arguments are redacted without"
        " view_arguments, names of workers without view_lease."
    )
    arguments: dict[str, Any]
    status: str = about(choices=[status.value for status in OperationStatus])
    is_finished: bool
    expected: int | None = about(
        "The number of fitting tasks in a dry run at its beginning; null: too many to count."
    )
    matched: int = about("Tasks processed.")
    done: int = about("Those of them to which it was done.")
    error: str = about(
        "Why it is retried or failed; if it has finished, how many tasks refused the change, and"
        " why."
    )
    requested_by: str
    reason: str
    created_at: datetime
    starts_at: datetime | None = about(
        "Until then nothing is done, and cancel undoes it; null: it begins at once."
    )
    started_at: datetime | None
    progressed_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ChosenTasks:
    """The tasks that an operation is about."""

    everything: bool
    ids_count: int | None = about("How many were chosen one by one; null: none were.")
    filter: dict[str, Any] = about(
        "The filter, as a request has it; values of arguments are redacted without"
        " view_arguments, names of workers without view_lease."
    )


@dataclass(frozen=True, kw_only=True)
class OperationDetails(ShownOperation):
    """An operation with its tasks and with those that it skipped."""

    chosen: ChosenTasks | None = about("null: another version wrote it.")
    held: int = about("Tasks in use, to which it will return.")
    refused: int = about("Tasks processed to which it could not be done.")

    @property
    def percent(self) -> int | None:
        """The processed share of the tasks counted at its start; None if they were not counted."""
        if self.is_finished:
            return 100
        if not self.expected:
            return None
        return min(99, 100 * (self.matched - self.held) // self.expected)

    @property
    def pace(self) -> float | None:
        """Tasks per second, until its last chunk; None if it is too early to tell."""
        if self.started_at is None or self.progressed_at is None:
            return None
        seconds = (self.progressed_at - self.started_at).total_seconds()
        return self.matched / seconds if seconds >= SOONEST_PACE else None

    @property
    def left_seconds(self) -> float | None:
        """Seconds until its end at this pace; None if it has ended, or the time is unknown."""
        if self.is_finished or not (self.pace and self.expected):
            return None
        return max(0.0, (self.expected - self.matched) / self.pace)


@dataclass(frozen=True, kw_only=True)
class SampleTask:
    """One of the tasks to which it would be done."""

    id: UUID
    name: str
    queue_name: str
    status: str = about(choices=[status.value for status in TaskStatus])
    enqueued_at: datetime
    error_class: str


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """The tasks that an operation would process now."""

    fitting: int = about(
        "Of ids, the tasks that exist. Else the same as doable: tasks in another status are not"
        " counted."
    )
    doable: int = about(
        "Tasks in a status that allows the verb; whether each can take the changes of an update is"
        " not checked."
    )
    is_capped: bool = about("Whether there may be more.")
    leaves_out_running: bool = about(
        "Whether running tasks are left out, since you lack the permission to stop."
    )
    held_by_lost: int = about(
        "Tasks that lost workers hold. The verb ends their attempts at once, though the bodies may"
        " still run if a worker's host is only cut off."
    )
    sample: list[SampleTask]


def shown_operation(operation: Operation, viewer: Viewer) -> ShownOperation:
    """Return the operation of a row, as the viewer may see it."""
    return from_row(ShownOperation, operation, **_computed(operation, viewer))


def operation_details(operation: Operation, viewer: Viewer) -> OperationDetails:
    """Return an operation with its tasks, by a query while it is unfinished."""
    held = held_count(operation) if operation.finished_at is None else 0
    return from_row(
        OperationDetails,
        operation,
        **_computed(operation, viewer),
        chosen=_chosen(operation, viewer),
        held=held,
        refused=operation.matched - operation.done - held,
    )


def dry_run(found: Estimate, *, leaves_out_running: bool, held_by_lost: int) -> DryRun:
    """Return the read model of an estimate."""
    return from_row(
        DryRun,
        found,
        leaves_out_running=leaves_out_running,
        held_by_lost=held_by_lost,
        sample=[from_row(SampleTask, task) for task in found.sample],
    )


def _computed(operation: Operation, viewer: Viewer) -> dict[str, Any]:
    return {
        "is_finished": operation.finished_at is not None,
        "query": shown_to(viewer, operation.query),
    }


def _chosen(operation: Operation, viewer: Viewer) -> ChosenTasks | None:
    try:
        which = which_of(operation)
    except (KeyError, ValueError):
        return None
    stored = {name: value for name, value in which.to_json().items() if name not in HOW}
    if "arguments" in stored and not viewer.has_perm(VIEW_ARGUMENTS):
        stored["arguments"] = {path: [REDACTED] for path in stored["arguments"]}
    if "worker" in stored and not viewer.has_perm(VIEW_LEASES):
        stored["worker"] = [REDACTED]
    return ChosenTasks(
        everything=which.everything,
        ids_count=None if which.ids is None else len(which.ids),
        filter=stored,
    )
