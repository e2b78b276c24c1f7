"""A task queue in the project's own database.

This module has the public names; none of them loads a model before it is used. Every process that
sets up Django imports this package, so most names are only imported when they are first used.
"""

from typing import TYPE_CHECKING

from taskqueue.core import __version__
from taskqueue.core.lazy_names import lazy_names
from taskqueue.core.priorities import Priority
from taskqueue.core.retries import Exponential, Fibonacci, Fixed, Linear
from taskqueue.core.uuid7 import uuid7 as new_id
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
    MemoryExceeded,
    QueueDoesNotExist,
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

if TYPE_CHECKING:
    from taskqueue.declarations.admission import Capacity, Debounce, Throttle
    from taskqueue.declarations.batch import Batch
    from taskqueue.declarations.limits import Concurrency, Fair, Rate, Sequence
    from taskqueue.declarations.notify import Notify
    from taskqueue.declarations.scheduled import Scheduled
    from taskqueue.definitions import Definition, task
    from taskqueue.embedded import Worker
    from taskqueue.results import get_result
    from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once
    from taskqueue.worker.bodies.context import Context, current
    from taskqueue.workflows import Workflow, chain, chord, fan_out, group, workflow

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
    "MemoryExceeded",
    "Notify",
    "Once",
    "Priority",
    "QueueDoesNotExist",
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

# The modules of names that are imported on demand.
PLACES = {
    name: module
    for module, names in {
        "taskqueue.declarations.admission": "Capacity Debounce Throttle",
        "taskqueue.declarations.batch": "Batch",
        "taskqueue.declarations.limits": "Concurrency Fair Rate Sequence",
        "taskqueue.declarations.notify": "Notify",
        "taskqueue.declarations.scheduled": "Scheduled",
        "taskqueue.definitions": "Definition task",
        "taskqueue.embedded": "Worker",
        "taskqueue.results": "get_result",
        "taskqueue.rules": "AfterEnd Cron DailyWindow Every Once",
        "taskqueue.worker.bodies.context": "Context current",
        "taskqueue.workflows": "Workflow chain chord fan_out group workflow",
    }.items()
    for name in names.split()
}

if not TYPE_CHECKING:  # A type checker would take any name to be there.
    __getattr__, __dir__ = lazy_names(__name__, PLACES)
