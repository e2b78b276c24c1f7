"""The verbs for people and scripts: actions on tasks, queues and workers by hand.

Each is guarded by the status of its subject, and audited with `by` and `reason` in the same
transaction. A verb on one task raises `TaskDoesNotExist`, `TransitionRefused` if the status of the
task does not allow it, and its subclass `ChangedMeanwhile` if the task has changed since the caller
has `seen` it. A verb on many tasks counts the tasks that refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from taskqueue.declarations.time_kinds import Moment
from taskqueue.engine.batches.by_hand import fire_group
from taskqueue.engine.control.bulk import BulkOutcome, act_on_many, count_held_by_lost, dry_run
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.limits import (
    limit_queue,
    override_limit,
    release_sequence,
    reset_limit,
)
from taskqueue.engine.control.locking import Seen, TaskId
from taskqueue.engine.control.mutable_options import check_changes
from taskqueue.engine.control.pauses import (
    pause_all,
    pause_definition,
    resume_all,
    resume_definition,
)
from taskqueue.engine.control.queues import delete_queue, pause, resume
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.worker_changes import change_worker
from taskqueue.engine.control.workers import (
    WorkerFilter,
    kill_worker,
    quiet_worker,
    request_workers,
    resume_worker,
    resume_workers,
    stop_worker,
)
from taskqueue.engine.operations.asking import (
    cancel_operation,
    get_operation,
    operations,
    start_operation,
)
from taskqueue.models.worker import WorkerRequest

__all__ = [
    "BulkOutcome",
    "TaskFilter",
    "WorkerFilter",
    "WorkerRequest",
    "cancel",
    "cancel_many",
    "cancel_operation",
    "change_worker",
    "count_held_by_lost",
    "delete",
    "delete_many",
    "delete_queue",
    "dry_run",
    "duplicate",
    "duplicate_many",
    "fire_group",
    "get_operation",
    "kill_worker",
    "limit_queue",
    "operations",
    "override_limit",
    "pause",
    "pause_all",
    "pause_definition",
    "quiet_worker",
    "release_sequence",
    "request_stop",
    "request_stop_many",
    "request_workers",
    "reschedule",
    "reschedule_many",
    "reset_limit",
    "resume",
    "resume_all",
    "resume_definition",
    "resume_worker",
    "resume_workers",
    "retry",
    "retry_many",
    "retry_with",
    "run_now",
    "run_now_many",
    "start_operation",
    "stop_worker",
    "update",
    "update_many",
]


def cancel(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> str:
    """Cancel a task: a waiting task ends now, a running one is asked to stop.

    An attempt whose worker is lost ends at once, as with `request_stop`. Returns the new status of
    the task.
    """
    return str(TASK_VERBS["cancel"].act(task, by=by, reason=reason, seen=seen))


def request_stop(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> str:
    """Ask a running task to stop; after a grace it is interrupted, after another one killed.

    Returns its status, which is `running` until it has stopped. An attempt whose worker is lost
    ends at once, and the task is cancelled; if the worker's host is only disconnected, the body may
    run until the worker reaches the database again. The first person who asked is recorded.
    """
    return str(TASK_VERBS["stop"].act(task, by=by, reason=reason, seen=seen))


def retry(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Run a finished task again: failures and crashes are reset, attempts keep counting.

    A running task whose worker is lost becomes ready at once too: its attempt ends as lost. If the
    worker's host is only disconnected, the body may run until the worker reaches the database
    again.
    """
    TASK_VERBS["retry"].act(task, by=by, reason=reason, seen=seen)


def retry_with(
    task: TaskId,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    by: object = "",
    reason: str = "",
    new_id: UUID | None = None,
) -> UUID:
    """Enqueue a finished task again with other arguments; return the id of the new task.

    None keeps the old `args` or `kwargs`. The old task does not change. The new one has the same
    options, names the old one in `retry_of`, and holds no unique key. `new_id` becomes its id; a
    second call with that id raises `EnqueuedBefore`. Raises `InvalidArguments`, and, if this
    process knows the definition, `ArgumentsDoNotBind`.
    """
    made: UUID = TASK_VERBS["retry_with"].act(
        task, by=by, reason=reason, args=args, kwargs=kwargs, new_id=new_id
    )
    return made


def run_now(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Make a task that waits for its time ready now."""
    TASK_VERBS["run_now"].act(task, by=by, reason=reason, seen=seen)


def reschedule(
    task: TaskId, run_after: Moment, *, by: object = "", reason: str = "", seen: Seen = None
) -> None:
    """Give a waiting task another time: a datetime, or a duration from now.

    Raises `InvalidTask` for an impossible time.
    """
    TASK_VERBS["reschedule"].act(task, by=by, reason=reason, seen=seen, run_after=run_after)


def update(
    task: TaskId,
    changes: Mapping[str, Any] | None = None,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> bool:
    """Change a task that has not finished; return whether anything changed.

    `changes` are options by their names: those of `mutable_options.MUTABLE`. If new `worker_names`
    exclude the worker that runs the task, its lease ends at its next ping. A new `ping_interval`
    applies from the next ping, every other option from the next claim. While the task waits,
    `deadline`, `expires_after` (both count from now), `metadata`, and the arguments can be changed
    too; None keeps the old `args` or `kwargs`. Raises `InvalidTask`, `ArgumentsDoNotBind` and
    `InvalidArguments`, and `TransitionRefused` for the arguments of a task of a workflow.
    """
    return bool(
        TASK_VERBS["update"].act(
            task, by=by, reason=reason, seen=seen, changes=changes or {}, args=args, kwargs=kwargs
        )
    )


def duplicate(
    task: TaskId,
    *,
    by: object = "",
    reason: str = "",
    new_id: UUID | None = None,
    **changes: Any,
) -> UUID:
    """Enqueue a copy of a task, with its name, arguments and options; return the new id.

    It is due at once, has no unique key, no deadline and no schedule, and does not count as a
    retry: only the audit links the two. `changes` are options that `update` accepts too, such as
    `queue_name` and `priority`. `new_id` becomes the id of the copy; a second call with that id
    raises `EnqueuedBefore`. Raises `InvalidTask`.
    """
    made: UUID = TASK_VERBS["duplicate"].act(task, by=by, reason=reason, new_id=new_id, **changes)
    return made


def delete(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Delete a finished task, its attempts and its log lines. Only audit entries remain.

    If it holds a unique key, the key becomes free.
    """
    TASK_VERBS["delete"].act(task, by=by, reason=reason, seen=seen)


def cancel_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Cancel all of them: waiting tasks end now, running ones are asked to stop."""
    return act_on_many(which, "cancel", by=by, reason=reason)


def request_stop_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Ask the matching running tasks to stop; attempts of lost workers end at once."""
    return act_on_many(which, "stop", by=by, reason=reason)


def retry_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Run the matching finished tasks again.

    If the `statuses` of the filter include `running`, tasks of lost workers are included too: their
    attempts end at once.
    """
    return act_on_many(which, "retry", by=by, reason=reason)


def run_now_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Make the matching tasks that wait for their time ready now."""
    return act_on_many(which, "run_now", by=by, reason=reason)


def reschedule_many(
    which: TaskFilter, run_after: Moment, *, by: object = "", reason: str = ""
) -> BulkOutcome:
    """Give the waiting tasks another time. Raises `InvalidTask` before anything is changed."""
    return act_on_many(which, "reschedule", by=by, reason=reason, run_after=run_after)


def update_many(
    which: TaskFilter, changes: Mapping[str, Any], *, by: object = "", reason: str = ""
) -> BulkOutcome:
    """Change options of the unfinished tasks. Raises `InvalidTask` as `update` does.

    Tasks to which a change cannot be applied count as refused.
    """
    check_changes(changes)
    return act_on_many(which, "update", by=by, reason=reason, changes=changes)


def delete_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Delete the matching tasks that have finished, with their attempts and log lines."""
    return act_on_many(which, "delete", by=by, reason=reason)


def duplicate_many(which: TaskFilter, *, by: object = "", reason: str = "") -> BulkOutcome:
    """Enqueue a copy of each matching task."""
    return act_on_many(which, "duplicate", by=by, reason=reason)
