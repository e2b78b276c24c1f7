"""What an enqueue gives back: a handle on a task, as it stood when last read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast
from uuid import UUID

from asgiref.sync import sync_to_async

from taskqueue import signals
from taskqueue.conf import Settings, get_settings
from taskqueue.definitions import Call, Definition, registry
from taskqueue.engine import control
from taskqueue.engine import enqueue as engine
from taskqueue.engine.connections import database_alias
from taskqueue.engine.rows import Enqueued, Payload, Request
from taskqueue.exceptions import DuplicateTask, Duration, TaskDoesNotExist
from taskqueue.models import Lease, Task
from taskqueue.options import LARGEST_METADATA
from taskqueue.payload import encode
from taskqueue.retries import seconds_of
from taskqueue.states import FINISHED, TaskStatus
from taskqueue.uuid7 import uuid7_hex, uuid7_hexes

if TYPE_CHECKING:
    from taskqueue.options import Moment, Options

R = TypeVar("R")
FIRST_LOOK, LONGEST_PAUSE = 0.01, 0.5
"""Seconds between two looks of a `wait`, which grow from the one to the other."""


class Progress(NamedTuple):
    """How far a running body says it is: 0 to 100, or None where it has not said."""

    percent: float | None
    message: str


@dataclass(frozen=True, kw_only=True)
class AttemptError:
    """Why one attempt did not succeed."""

    exception_class_path: str
    message: str
    traceback: str
    attempt: int
    worker_name: str


class TaskResult(Generic[R]):
    """A handle on one task. Its attributes are as last read: `refresh()` reads again."""

    def __init__(self, enqueued: Enqueued, definition: Definition[Any, R] | None) -> None:
        self._id = enqueued.id
        self.status: str = enqueued.status
        self.enqueued_at: datetime = enqueued.enqueued_at
        self.ready_at: datetime | None = enqueued.ready_at
        self.started_at: datetime | None = None
        self.finished_at: datetime | None = None
        self.attempts = 0
        self.created = enqueued.created
        self.updated = enqueued.updated
        self.definition = definition
        self._row: Task | None = None
        self._args: str | list[Any] | None = None
        self._kwargs: str | dict[str, Any] | None = None
        self._errors: list[AttemptError] | None = None

    @classmethod
    def of(cls, task: Task, definition: Definition[Any, R] | None = None) -> TaskResult[R]:
        """The handle on a row."""
        result = cls(
            Enqueued(task.id.hex, task.status, task.enqueued_at, task.ready_at, created=False),
            definition,
        )
        result._take(task)
        return result

    @cached_property
    def id(self) -> UUID:
        """The id of the task."""
        return UUID(hex=self._id)

    def __repr__(self) -> str:
        return f"<TaskResult {self.id} {self.status}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskResult) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def name(self) -> str:
        """The name of the definition."""
        return self.definition.name if self.definition else self._loaded.name

    @property
    def args(self) -> list[Any]:
        """The positional arguments, as JSON gives them back."""
        if isinstance(self._args, str):
            self._args = list(json.loads(self._args))
        return self._loaded.args if self._args is None else self._args

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments, as JSON gives them back."""
        if isinstance(self._kwargs, str):
            self._kwargs = dict(json.loads(self._kwargs))
        return self._loaded.kwargs if self._kwargs is None else self._kwargs

    @property
    def metadata(self) -> dict[str, Any]:
        """The JSON object that travels with the task."""
        return dict(self._loaded.metadata)

    @property
    def is_finished(self) -> bool:
        """Whether it has succeeded, failed or was cancelled."""
        return self.status in FINISHED

    @property
    def return_value(self) -> R:
        """What the body returned. Raises ValueError unless the task has succeeded."""
        if self.status == TaskStatus.SUCCEEDED:
            return cast(R, self._loaded.return_value)
        if self.is_finished:
            raise ValueError(f"Task {self.id} has {self.status} and has no return value.")
        raise ValueError(f"Task {self.id} is {self.status}: it has not finished yet.")

    @property
    def errors(self) -> list[AttemptError]:
        """Why attempts did not succeed, oldest first; kept when a later one succeeds."""
        if self._errors is None:
            self._errors = self._read_errors()
        return self._errors

    @property
    def progress(self) -> Progress:
        """How far the latest attempt says it is, read at this moment."""
        lease = self._leases().last()
        return Progress(lease.progress, lease.progress_message) if lease else Progress(None, "")

    @property
    def worker_names(self) -> list[str]:
        """Who started it, attempt by attempt."""
        return [lease.worker_id for lease in self._leases()]

    def refresh(self) -> None:
        """Read the task again. Raises `TaskDoesNotExist` if it is gone."""
        self._take(_row(self.id))

    async def arefresh(self) -> None:
        """As `refresh`, from async code."""
        await sync_to_async(self.refresh, thread_sensitive=True)()

    def wait(self, timeout: Duration | None = None) -> TaskResult[R]:
        """Wait until the task has finished, and read it.

        Raises TimeoutError after `timeout` seconds. Within a transaction that enqueued it, no
        worker can see the task, and waiting cannot end.
        """
        pauses = _Pauses(timeout, self)
        while True:
            self.refresh()
            if self.is_finished:
                return self
            time.sleep(pauses.next())

    async def async_wait(self, timeout: Duration | None = None) -> TaskResult[R]:
        """As `wait`, from async code."""
        import asyncio

        pauses = _Pauses(timeout, self)
        while True:
            await self.arefresh()
            if self.is_finished:
                return self
            await asyncio.sleep(pauses.next())

    def cancel(self, reason: str = "", *, by: str = "") -> None:
        """Cancel it: what waits ends now, what runs is asked to stop.

        Raises `TransitionRefused` if it has finished.
        """
        control.cancel(self.id, by=by, reason=reason)
        self.refresh()

    def request_stop(self, reason: str = "", *, by: str = "") -> None:
        """Ask a running task to stop; after a grace it is interrupted, after another killed."""
        control.request_stop(self.id, by=by, reason=reason)
        self.refresh()

    def retry(self, reason: str = "", *, by: str = "") -> None:
        """Run a finished task again. Raises `TransitionRefused` if it has not finished."""
        control.retry(self.id, by=by, reason=reason)
        self.refresh()

    @property
    def _loaded(self) -> Task:
        if self._row is None:
            self.refresh()
        assert self._row is not None
        return self._row

    def _take(self, task: Task) -> None:
        self._row = task
        self._args, self._kwargs, self._errors = None, None, None
        self.status = task.status
        self.attempts = task.attempt
        self.enqueued_at, self.ready_at = task.enqueued_at, task.ready_at
        self.started_at, self.finished_at = task.started_at, task.finished_at

    def _leases(self) -> Any:
        return Lease.objects.using(database_alias()).filter(task_id=self.id).order_by("attempt")

    def _read_errors(self) -> list[AttemptError]:
        return errors_of(self._loaded, self._leases())


def errors_of(task: Task, leases: Iterable[Lease]) -> list[AttemptError]:
    """Why the attempts of a task did not succeed, oldest first, as its leases tell."""
    errors = [
        AttemptError(
            exception_class_path=lease.error_class,
            message=lease.error_message,
            traceback=lease.traceback,
            attempt=lease.attempt,
            worker_name=lease.worker_id,
        )
        for lease in leases
        if lease.error_class
    ]
    if task.error_class and all(task.error_class != each.exception_class_path for each in errors):
        errors.append(
            AttemptError(
                exception_class_path=task.error_class,
                message=task.error_message,
                traceback="",
                attempt=task.attempt,
                worker_name="",
            )
        )
    return errors


class _Pauses:
    """Growing pauses between looks, until the time is over."""

    def __init__(self, timeout: Duration | None, result: TaskResult[Any]) -> None:
        self._end = None if timeout is None else time.monotonic() + seconds_of(timeout)
        self._timeout, self._result, self._pause = timeout, result, FIRST_LOOK

    def next(self) -> float:
        pause, self._pause = self._pause, min(LONGEST_PAUSE, self._pause * 1.5)
        if self._end is None:
            return pause
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(
                f"Task {self._result.id} is {self._result.status} after {self._timeout} s."
            )
        return min(pause, left)


def _row(task_id: UUID) -> Task:
    task = Task.objects.using(database_alias()).filter(id=task_id).first()
    if task is None:
        raise TaskDoesNotExist(
            f"There is no task {task_id}: it was never committed, or pruned after its retention."
        )
    return task


def get_result(task_id: UUID | str) -> TaskResult[Any]:
    """The handle on a task by its id. Raises `TaskDoesNotExist`."""
    task = _row(identifier_of(task_id))
    return TaskResult.of(task, registry.find(task.name))


def identifier_of(task_id: UUID | str) -> UUID:
    """The id of a task, from its text too. Raises `TaskDoesNotExist`."""
    try:
        return task_id if isinstance(task_id, UUID) else UUID(str(task_id))
    except ValueError:
        raise TaskDoesNotExist(f"{task_id!r} is not the id of a task.") from None


def enqueue(definition: Definition[Any, R], args: Any, kwargs: Any) -> TaskResult[R]:
    """Write one task of a definition. See `Definition.enqueue`."""
    payload = Payload(uuid7_hex(), *definition.encode(args, kwargs))
    with _telling_of_holder():
        enqueued = engine.enqueue(
            request_of(definition), payload, on_duplicate=definition.options.on_duplicate
        )
    result = _handle(definition, enqueued, payload)
    _tell_enqueued(definition, [result])
    return result


def enqueue_many(definition: Definition[Any, R], calls: Iterable[Call]) -> list[TaskResult[R]]:
    """Write many tasks of a definition. See `Definition.enqueue_many`."""
    payloads = _payloads(definition, calls)
    with _telling_of_holder():
        enqueued = engine.enqueue_many(
            request_of(definition), payloads, on_duplicate=definition.options.on_duplicate
        )
    results = [
        _handle(definition, each, payload) for each, payload in zip(enqueued, payloads, strict=True)
    ]
    _tell_enqueued(definition, results)
    return results


@contextmanager
def _telling_of_holder() -> Iterator[None]:
    """Let a `DuplicateTask` carry the holder's result in place of its id."""
    try:
        yield
    except DuplicateTask as duplicate:
        duplicate.result = get_result(cast(UUID, duplicate.result))
        raise


def _tell_enqueued(definition: Definition[Any, Any], results: Sequence[TaskResult[Any]]) -> None:
    """Send the signal, from the registered definition, whatever `.using()` made of it."""
    if not signals.task_enqueued.receivers:
        return
    sender = registry.find(definition.name) or definition
    for result in results:
        signals.task_enqueued.send(sender, task_result=result)


def _payloads(definition: Definition[Any, Any], calls: Iterable[Call]) -> Sequence[Payload]:
    encode: Callable[[Any, Any], tuple[str, str, str | None]] = definition.encode
    encoded = [encode(tuple(args), kwargs) for args, kwargs in calls]
    ids = uuid7_hexes(len(encoded))
    return [Payload(id, *each) for id, each in zip(ids, encoded, strict=True)]


def _handle(definition: Definition[Any, R], enqueued: Enqueued, payload: Payload) -> TaskResult[R]:
    result = TaskResult(enqueued, definition)
    if enqueued.created:
        result._args, result._kwargs = payload.args, payload.kwargs
    return result


def request_of(definition: Definition[Any, Any]) -> Request:
    """What all tasks of one enqueue share; made once for a definition and its settings."""
    settings = get_settings()
    known = definition.request
    if known is None or known[0] is not settings:
        known = definition.request = settings, _request_of(definition, settings)
    return known[1]


def _request_of(definition: Definition[Any, Any], settings: Settings) -> Request:
    options = definition.options
    run_at, run_in = _moment(options.run_after)
    deadline_at, deadline_in = _moment(options.deadline)
    unique_for, unique_in = _unique_for(options)
    return Request(
        name=definition.name,
        queue_name=options.queue_name,
        priority=options.priority,
        run_at=run_at,
        run_in=run_in,
        options=definition.snapshot,
        metadata=encode(options.metadata, limit=LARGEST_METADATA, what="metadata")
        if options.metadata
        else "{}",
        max_attempts=options.max_attempts or settings.MAX_ATTEMPTS,
        max_crashes=options.max_crashes or settings.MAX_CRASHES,
        crash_delay=settings.CRASH_DELAY if options.crash_delay is None else options.crash_delay,
        deadline_at=deadline_at,
        deadline_in=deadline_in,
        expires_in=None if options.expires_after is None else seconds_of(options.expires_after),
        lease_duration=options.lease_duration,
        ping_interval=options.ping_interval,
        retention=options.retention,
        unique_for=unique_for,
        unique_in=unique_in,
        workers=options.workers,
        worker_names=options.worker_names,
        broadcast=options.broadcast,
        restart=options.restart,
    )


def _moment(moment: Moment | None) -> tuple[datetime | None, float | None]:
    if moment is None or isinstance(moment, datetime):
        return moment, None
    return None, seconds_of(moment)


def _unique_for(options: Options) -> tuple[str, float | None]:
    if options.unique_key is None:
        return "", None
    if isinstance(options.unique_for, timedelta):
        return "duration", options.unique_for.total_seconds()
    return options.unique_for, None
