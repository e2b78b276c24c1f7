"""A task queue in the Django project's own database.

The names here are the public ones; none of them loads a model before it is used.
"""

from taskqueue.context import Context, current
from taskqueue.definitions import Definition, task
from taskqueue.exceptions import (
    ArgumentsDoNotBind,
    AttemptLost,
    Cancel,
    DeadlineExceeded,
    DuplicateTask,
    GiveUp,
    InvalidArguments,
    InvalidSchedule,
    InvalidTask,
    RetryLater,
    ScheduleDoesNotExist,
    Snooze,
    Stopped,
    TaskDoesNotExist,
    TaskQueueError,
    TaskResultMismatch,
    TaskTimeout,
    TransitionRefused,
    UnknownTask,
    WorkerDoesNotExist,
)
from taskqueue.retries import Exponential, Fibonacci, Fixed, Linear
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once
from taskqueue.scheduled import Scheduled

__version__ = "0.1.0"

__all__ = [
    "AfterEnd",
    "ArgumentsDoNotBind",
    "AttemptLost",
    "Cancel",
    "Context",
    "Cron",
    "DailyWindow",
    "DeadlineExceeded",
    "Definition",
    "DuplicateTask",
    "Every",
    "Exponential",
    "Fibonacci",
    "Fixed",
    "GiveUp",
    "InvalidArguments",
    "InvalidSchedule",
    "InvalidTask",
    "Linear",
    "Once",
    "RetryLater",
    "ScheduleDoesNotExist",
    "Scheduled",
    "Snooze",
    "Stopped",
    "TaskDoesNotExist",
    "TaskQueueError",
    "TaskResultMismatch",
    "TaskTimeout",
    "TransitionRefused",
    "UnknownTask",
    "WorkerDoesNotExist",
    "__version__",
    "current",
    "task",
]
