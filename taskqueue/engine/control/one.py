"""The verbs on one task, as `taskqueue.control` offers them: guarded, audited, loud when refused.

Each raises `TaskDoesNotExist`, `TransitionRefused` if the task does not allow it, and its
`ChangedMeanwhile` if the task is not as the caller has `seen` it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from taskqueue.declarations.option_kinds import Moment
from taskqueue.engine.control.locking import Seen, TaskId
from taskqueue.engine.control.task_verbs import TASK_VERBS


def cancel(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> str:
    """Cancel a task: one that waits ends now, a running one is asked to stop.

    An attempt whose worker is lost ends at once, as with `request_stop`. Returns the status that
    the task has then.
    """
    status: str = TASK_VERBS["cancel"].act(task, by=by, reason=reason, seen=seen)
    return status


def stop_or_cancel(task: TaskId, *, by: object = "", reason: str = "") -> str:
    """As `cancel`, but what runs is audited as stopped, also where its worker is lost."""
    cancelling = TASK_VERBS["cancel"]
    status: str = cancelling.act(task, by=by, reason=reason, ended_by="stop")
    return status


def request_stop(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> str:
    """Ask a running task to stop: it is told, after a grace interrupted, after another killed.

    Returns its status, which is `running` until it has stopped. An attempt whose worker is lost
    ends at once, and the task is cancelled; if the worker's host is only cut off, the body may
    run until the worker reaches the database again. Who asked first is remembered.
    """
    status: str = TASK_VERBS["stop"].act(task, by=by, reason=reason, seen=seen)
    return status


def retry(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Run a finished task again, its failures and crashes forgotten, its attempts counted on.

    A running task whose worker is lost is ready at once too: its attempt ends as lost. If the
    worker's host is only cut off, the body may run until the worker reaches the database again.
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
    """Enqueue a finished task anew with other arguments; the id of the new task.

    None leaves those arguments as they are. The old task stays as it is, the new one has its
    options and names it in `retry_of`; it holds no unique key. Where `new_id` is given, it is the
    new task's, and the second call with it raises `EnqueuedBefore`. Raises `ArgumentsDoNotBind`
    where this process knows the definition, and `InvalidArguments`.
    """
    made: UUID = TASK_VERBS["retry_with"].act(
        task, by=by, reason=reason, args=args, kwargs=kwargs, new_id=new_id
    )
    return made


def run_now(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Make a task ready that waits for its time."""
    TASK_VERBS["run_now"].act(task, by=by, reason=reason, seen=seen)


def reschedule(
    task: TaskId, run_after: Moment, *, by: object = "", reason: str = "", seen: Seen = None
) -> None:
    """Give a task that waits another time: a datetime, or a duration from now.

    Raises `InvalidTask` for a time that cannot be.
    """
    TASK_VERBS["reschedule"].act(task, by=by, reason=reason, seen=seen, run_after=run_after)


def update(
    task: TaskId,
    changes: Mapping[str, Any],
    *,
    by: object = "",
    reason: str = "",
    seen: Seen = None,
) -> bool:
    """Change options of a task that has not finished; whether that changed anything.

    `changes` are options by their names: those of `mutable_options.TERMS`. `worker_names` that now
    exclude a worker end its lease at its next ping, `ping_interval` counts from the next ping,
    everything else from the next claim. Raises `InvalidTask`.
    """
    is_changed: bool = TASK_VERBS["update"].act(
        task, by=by, reason=reason, seen=seen, changes=changes
    )
    return is_changed


def duplicate(
    task: TaskId,
    *,
    by: object = "",
    reason: str = "",
    new_id: UUID | None = None,
    **changes: Any,
) -> UUID:
    """Enqueue a task with the name, arguments and options of another; the id of the new one.

    It is due at once, has no unique key, no deadline and no schedule, and is no retry: only the
    audit of both ties them. `changes` are options that `update` takes too, such as `queue_name` and
    `priority`. Where `new_id` is given, it is the new task's, and the second call with it raises
    `EnqueuedBefore`. Raises `InvalidTask`.
    """
    made: UUID = TASK_VERBS["duplicate"].act(task, by=by, reason=reason, new_id=new_id, **changes)
    return made


def delete(task: TaskId, *, by: object = "", reason: str = "", seen: Seen = None) -> None:
    """Delete a finished task, its attempts and its log lines; only the audit tells of it then.

    A unique key that it holds is free from then on.
    """
    TASK_VERBS["delete"].act(task, by=by, reason=reason, seen=seen)
