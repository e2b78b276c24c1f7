"""A task queue in the Django project's own database.

The names here are the public ones; none of them loads a model before it is used.
"""

from typing import TYPE_CHECKING, Any

from taskqueue.core import __version__
from taskqueue.core.retries import Exponential, Fibonacci, Fixed, Linear
from taskqueue.core.uuid7 import uuid7 as new_id
from taskqueue.declarations.admission import Capacity, Debounce, Throttle
from taskqueue.declarations.batch import Batch
from taskqueue.declarations.limits import Concurrency, Fair, Rate, Sequence
from taskqueue.declarations.notify import Notify
from taskqueue.declarations.scheduled import Scheduled
from taskqueue.definitions import Definition, task
from taskqueue.exceptions import (
    ArgumentsDoNotBind,
    AttemptLost,
    Cancel,
    CapacityReached,
    DeadlineExceeded,
    DuplicateTask,
    EnqueuedBefore,
    GiveUp,
    InvalidArguments,
    InvalidSchedule,
    InvalidTask,
    InvalidWorkflow,
    LimitDoesNotExist,
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
    UnknownWorkflow,
    WorkerDoesNotExist,
    WrongType,
)
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once
from taskqueue.worker.bodies.context import Context, current
from taskqueue.workflows import Workflow, chain, chord, fan_out, group, workflow

if TYPE_CHECKING:
    from taskqueue.embedded import Worker
    from taskqueue.results import get_result

__all__ = [
    "AfterEnd",
    "ArgumentsDoNotBind",
    "AttemptLost",
    "Batch",
    "Cancel",
    "Capacity",
    "CapacityReached",
    "Concurrency",
    "Context",
    "Cron",
    "DailyWindow",
    "DeadlineExceeded",
    "Debounce",
    "Definition",
    "DuplicateTask",
    "EnqueuedBefore",
    "Every",
    "Exponential",
    "Fair",
    "Fibonacci",
    "Fixed",
    "GiveUp",
    "InvalidArguments",
    "InvalidSchedule",
    "InvalidTask",
    "InvalidWorkflow",
    "LimitDoesNotExist",
    "Linear",
    "Notify",
    "Once",
    "Rate",
    "RetryLater",
    "ScheduleDoesNotExist",
    "Scheduled",
    "Sequence",
    "Snooze",
    "Stopped",
    "TaskDoesNotExist",
    "TaskQueueError",
    "TaskResultMismatch",
    "TaskTimeout",
    "Throttle",
    "TransitionRefused",
    "UnknownTask",
    "UnknownWorkflow",
    "Worker",
    "WorkerDoesNotExist",
    "Workflow",
    "WrongType",
    "__version__",
    "chain",
    "chord",
    "current",
    "fan_out",
    "get_result",
    "group",
    "new_id",
    "task",
    "workflow",
]


def __getattr__(name: str) -> Any:
    if name == "get_result":  # They need the models.
        from taskqueue.results import get_result

        return get_result
    if name == "Worker":
        from taskqueue.embedded import Worker

        return Worker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
