"""The result of an enqueue: a handle for a task, with the values last read."""

from taskqueue.results.enqueueing import enqueue, enqueue_many
from taskqueue.results.handle import TaskResult, get_result
from taskqueue.results.reading import (
    AttemptError,
    AttemptRecord,
    Cancellation,
    LogLine,
    Progress,
    errors_of,
)

__all__ = [
    "AttemptError",
    "AttemptRecord",
    "Cancellation",
    "LogLine",
    "Progress",
    "TaskResult",
    "enqueue",
    "enqueue_many",
    "errors_of",
    "get_result",
]
