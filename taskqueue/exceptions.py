"""The exceptions of taskqueue, and those that bodies raise to control what happens next."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from taskqueue.core.refusals import refusal as _

#: Seconds, or a timedelta.
Duration = int | float | timedelta
#: Seconds; no option and no delay may be longer.
LONGEST_DURATION = 100 * 366 * 24 * 3600


class TaskQueueError(Exception):
    """Base of all errors of taskqueue."""

    #: Which argument or field is wrong, where one is: its name, then keys and indexes.
    path: tuple[object, ...] = ()


class _Invalid(TaskQueueError, ValueError):
    def __init__(self, message: str = "", *, path: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


class InvalidTask(_Invalid):
    """A definition, or an option of one, that cannot work."""


class InvalidSchedule(InvalidTask):
    """A schedule, or the rule of one, that cannot work."""


class InvalidAlertRule(InvalidTask):
    """An alert rule that cannot work."""


class AlertRuleExists(InvalidAlertRule):
    """An alert rule has that name already."""


class ScheduleExists(InvalidSchedule):
    """A schedule has that name already."""


class InvalidWorkflow(InvalidTask):
    """A workflow, or a part of one, that cannot work.

    Of steps that a request describes, `path` says where: `steps`, the place in the list, and so on.
    """


class UnknownTask(TaskQueueError, LookupError):
    """No definition is registered under that name."""


class UnknownWorkflow(TaskQueueError, LookupError):
    """No workflow is registered under that name."""


class InvalidArguments(_Invalid):
    """Arguments or a result that cannot be stored as JSON without a change.

    `path` says where: the name of the value, such as `kwargs`, then keys and indexes.
    """


class WrongType(InvalidArguments, TypeError):
    """An argument that does not match its annotation."""


class UnsupportedType(WrongType):
    """A value of a type that JSON does not have."""


class ArgumentsDoNotBind(TaskQueueError, TypeError):
    """Arguments that do not fit the signature of the body."""


class DuplicateTask(TaskQueueError):
    """Another task holds the unique key; `result` is the result of that task.

    If many tasks are enqueued at once, `place` is the position of this one, from 0; `result` is
    None if another of them holds the key.
    """

    def __init__(
        self,
        message: str,
        result: object = None,
        *,
        unique_key: str | None = None,
        place: int | None = None,
    ) -> None:
        super().__init__(message)
        self.result = result
        self.unique_key = unique_key
        self.place = place


class CapacityReached(TaskQueueError):
    """There are as many unfinished tasks as `capacity=` allows; `capacity` is that number."""

    def __init__(self, message: str, capacity: int = 0) -> None:
        super().__init__(message)
        self.capacity = capacity


class DuplicateWorkflow(TaskQueueError):
    """Another workflow holds the unique key; `result` is its id."""

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result


class EnqueuedBefore(TaskQueueError):
    """A task with the given id exists already; `task_id` and `name` are those of that task.

    Nothing is written: an id that is given with `.using(id=...)` can be used once.
    """

    def __init__(self, task_id: UUID, name: str) -> None:
        super().__init__(_("Task {task_id} exists already.", task_id=task_id))
        self.task_id = task_id
        self.name = name


class WorkflowDoesNotExist(TaskQueueError, LookupError):
    """No workflow has that id: it never existed, or was pruned."""


class TaskDoesNotExist(TaskQueueError, LookupError):
    """No task has that id: it was never enqueued, rolled back, or pruned after its retention."""


class TaskResultMismatch(TaskQueueError):
    """The task belongs to another definition than the one that was asked for it."""


class QueueDoesNotExist(TaskQueueError, LookupError):
    """No queue has that name."""


class LimitDoesNotExist(TaskQueueError, LookupError):
    """No limit has that name."""


class InvalidWebhook(InvalidTask):
    """An endpoint of webhooks that cannot work, such as one whose host is not public."""


class InvalidSavedSearch(InvalidTask):
    """A search that cannot be saved: without a name, too long, or one too many."""


class SavedSearchExists(InvalidSavedSearch):
    """The owner has saved a search of that name already."""


class SavedSearchDoesNotExist(TaskQueueError, LookupError):
    """No saved search has that id, or only one that is not shared with the user."""


class EndpointDoesNotExist(TaskQueueError, LookupError):
    """No endpoint of webhooks has that id."""


class DeliveryDoesNotExist(TaskQueueError, LookupError):
    """No delivery has that id: it never existed, or was pruned."""


class WorkerDoesNotExist(TaskQueueError, LookupError):
    """No such worker: its name is unknown, or it has ended."""


class OperationDoesNotExist(TaskQueueError, LookupError):
    """No operation has that id."""


class IdempotencyKeyReused(TaskQueueError):
    """The key was used with another request before."""


class ScheduleDoesNotExist(TaskQueueError, LookupError):
    """No schedule has that name."""


class AlertRuleDoesNotExist(TaskQueueError, LookupError):
    """No alert rule has that name."""


class AlertDoesNotExist(TaskQueueError, LookupError):
    """No alert has that id."""


class TransitionRefused(TaskQueueError):
    """The status of the task does not allow this."""


class ChangedMeanwhile(TransitionRefused):
    """The row has changed since the caller saw it, so nothing was done."""


class RequestedBefore(TransitionRefused):
    """A request with that id was made before, so nothing was done a second time."""


class MemoryExceeded(TaskQueueError, MemoryError):
    """The process of the body used more memory than its `max_memory`."""


class TaskTimeout(TaskQueueError, TimeoutError):
    """The body ran for longer than its `timeout`."""


class DeadlineExceeded(TaskQueueError, TimeoutError):
    """The task did not end by its `deadline`."""


class AttemptLost(TaskQueueError):
    """The process that ran the attempt died, or its worker stopped renewing the lease."""


class LeaseEnded(TaskQueueError):
    """The attempt no longer holds its task; its writes have no effect."""


class Stopped(BaseException):
    """The task was asked to stop. Raised by `context.check()`, or in a body that does not call it.

    Not an `Exception`, so that `except Exception:` in a body does not swallow it.
    """


class Directive(Exception):
    """Base of exceptions that a body raises to decide what happens to its task."""

    # Whether it has already been logged where it was raised.
    _is_logged = False


class _Delayed(Directive):
    def __init__(self, delay: Duration, message: str = "") -> None:
        try:
            seconds = delay.total_seconds() if isinstance(delay, timedelta) else float(delay)
        except (TypeError, ValueError, OverflowError):
            seconds = -1.0
        if not 0 <= seconds <= LONGEST_DURATION:
            raise ValueError(
                f"{type(self).__name__}: the delay must be 0 or more seconds, or a timedelta, "
                f"and at most 100 years ({LONGEST_DURATION:,} seconds), not {delay!r}."
            )
        super().__init__(message or f"again in {seconds:g} s")
        self.delay = timedelta(seconds=seconds)


class RetryLater(_Delayed):
    """Count a failure, and try again after `delay`, whatever `max_attempts` says."""


class Snooze(_Delayed):
    """Count nothing, and run again after `delay`."""


class GiveUp(Directive):
    """Fail for good: no attempt would help."""


class Cancel(Directive):
    """End the task as cancelled."""


class InvalidSubscription(_Invalid):
    """A subscription to events cannot work as it is written."""


class TooManyReaders(TaskQueueError):
    """The maximum number of readers with different filters already follow events."""


class EventsGone(TaskQueueError):
    """Events that a reader has not read yet have been deleted."""

    def __init__(self, message: str, *, oldest: int) -> None:
        """`oldest` is the number of the first event that is still there."""
        super().__init__(message)
        self.oldest = oldest
