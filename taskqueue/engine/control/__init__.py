"""What people do by hand to tasks, queues and workers: guarded, audited, loud when refused."""

from taskqueue.engine.control.bulk import (
    BulkOutcome,
    cancel_many,
    count_held_by_lost,
    delete_many,
    dry_run,
    duplicate_many,
    request_stop_many,
    reschedule_many,
    retry_many,
    run_now_many,
    update_many,
)
from taskqueue.engine.control.changes import reschedule, run_now, update
from taskqueue.engine.control.deleting import delete
from taskqueue.engine.control.duplicating import duplicate
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.engine.control.lineage import retry_with
from taskqueue.engine.control.queues import pause, resume
from taskqueue.engine.control.retrying import retry, retry_finished
from taskqueue.engine.control.tasks import cancel, request_stop
from taskqueue.engine.control.workers import (
    WorkerFilter,
    kill_worker,
    quiet_worker,
    request_workers,
    resume_worker,
    resume_workers,
    stop_worker,
)

__all__ = [
    "BulkOutcome",
    "TaskFilter",
    "WorkerFilter",
    "cancel",
    "cancel_many",
    "count_held_by_lost",
    "delete",
    "delete_many",
    "dry_run",
    "duplicate",
    "duplicate_many",
    "kill_worker",
    "pause",
    "quiet_worker",
    "request_stop",
    "request_stop_many",
    "request_workers",
    "reschedule",
    "reschedule_many",
    "resume",
    "resume_worker",
    "resume_workers",
    "retry",
    "retry_finished",
    "retry_many",
    "retry_with",
    "run_now",
    "run_now_many",
    "stop_worker",
    "update",
    "update_many",
]
