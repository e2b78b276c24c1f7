"""The verbs for people and scripts: what can be done to tasks, queues and workers by hand.

Each is guarded by what it is done to, and audited with `by` and `reason` in its own transaction.
"""

from taskqueue.engine.control import (
    BulkOutcome,
    TaskFilter,
    WorkerFilter,
    cancel,
    cancel_many,
    dry_run,
    kill_worker,
    pause,
    quiet_worker,
    request_stop,
    request_stop_many,
    request_workers,
    reschedule,
    reschedule_many,
    resume,
    retry,
    retry_many,
    retry_with,
    run_now,
    run_now_many,
    stop_worker,
    update,
    update_many,
)
from taskqueue.models.worker import WorkerRequest

__all__ = [
    "BulkOutcome",
    "TaskFilter",
    "WorkerFilter",
    "WorkerRequest",
    "cancel",
    "cancel_many",
    "dry_run",
    "kill_worker",
    "pause",
    "quiet_worker",
    "request_stop",
    "request_stop_many",
    "request_workers",
    "reschedule",
    "reschedule_many",
    "resume",
    "retry",
    "retry_many",
    "retry_with",
    "run_now",
    "run_now_many",
    "stop_worker",
    "update",
    "update_many",
]
