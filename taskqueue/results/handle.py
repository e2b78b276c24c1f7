"""The handle on a task, as it was when last read."""

from __future__ import annotations

import json
import time
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, cast
from uuid import UUID

from asgiref.sync import sync_to_async

from taskqueue.core.retries import seconds_of
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.locking import id_of
from taskqueue.engine.specs import Enqueued
from taskqueue.exceptions import Duration
from taskqueue.models import Lease, Task
from taskqueue.results.reading import (
    AttemptError,
    AttemptRecord,
    Cancellation,
    Progress,
    cancellation_of,
    errors_of,
    naming_arefresh,
    record_of,
    row_of,
)
from taskqueue.results.verbs import TaskVerbs

R = TypeVar("R")
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
"""The pauses of a `wait` between two reads grow from the first to the second, in seconds."""


class TaskResult(TaskVerbs, Generic[R]):
    """A handle on one task. Its attributes are as last read; `refresh()` reads them again."""

    def __init__(self, enqueued: Enqueued, definition: BaseDefinition[Any, R] | None) -> None:
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
        self._name = enqueued.name
        self._row: Task | None = None
        self._args: str | list[Any] | None = None
        self._kwargs: str | dict[str, Any] | None = None
        self._errors: list[AttemptError] | None = None
        self._attempts: list[Lease] | None = None
        self._cancellation: tuple[Cancellation | None] | None = None

    @classmethod
    def of(cls, task: Task, definition: BaseDefinition[Any, R] | None = None) -> Self:
        """Return the handle on a row."""
        result = cls(
            Enqueued(
                task.id.hex, task.status, task.enqueued_at, task.ready_at,
                created=False, name=task.name,
            ),
            definition,
        )  # fmt: skip
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
        if self._name is None:
            self._name = self.definition.name if self.definition else self._loaded.name
        return self._name

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
        """Return whether the task has succeeded, failed or been cancelled."""
        return self.status in FINISHED

    @property
    def return_value(self) -> R:
        """Return the value of the body. Raises ValueError unless the task has succeeded."""
        if self.status == TaskStatus.SUCCEEDED:
            return cast(R, self._loaded.return_value)
        if self.is_finished:
            verb = "is" if self.status == TaskStatus.CANCELLED else "has"
            raise ValueError(f"Task {self.id} {verb} {self.status} and has no return value.")
        raise ValueError(f"Task {self.id} is {self.status}: it has not finished yet.")

    @property
    def errors(self) -> list[AttemptError]:
        """Return the errors of attempts, oldest first; they are kept on a later success."""
        if self._errors is None:
            self._errors = self._read_errors()
        return self._errors

    @property
    def cancelled_by(self) -> str:
        """The person who cancelled the task or asked it to stop; empty if nobody did."""
        cancellation = self._read_cancellation()
        return cancellation.by if cancellation else ""

    @property
    def cancel_reason(self) -> str:
        """Return the reason of the cancellation or request to stop; empty if there is none."""
        cancellation = self._read_cancellation()
        return cancellation.reason if cancellation else ""

    @property
    def history(self) -> list[AttemptRecord]:
        """Return all attempts of all workers, oldest first, with results, errors and times."""
        return [record_of(lease) for lease in self._seen_leases()]

    @property
    def progress(self) -> Progress:
        """Return the progress of the latest attempt: now, or as `arefresh` read it.

        A success is 100 percent if its body reported any progress.
        """
        lease = self._latest_lease()
        return Progress(lease.progress, lease.progress_message) if lease else Progress(None, "")

    @property
    def worker_names(self) -> list[str]:
        """Return the worker of each attempt."""
        return [lease.worker_id for lease in self._seen_leases()]

    def refresh(self) -> None:
        """Read the task again. Raises `TaskDoesNotExist` if it was deleted."""
        self._take(row_of(self.id))

    async def arefresh(self) -> None:
        """Async version of `refresh`: all attributes may then be read in async code too."""
        await self._read_after(self.refresh)

    def wait(self, timeout: Duration | None = None) -> TaskResult[R]:
        """Wait until the task has finished, and read it.

        Raises TimeoutError after `timeout` seconds. Do not wait within the transaction that
        enqueued the task: no worker can see it there.
        """
        pauses = Pauses(timeout)
        while True:
            self.refresh()
            if self.is_finished:
                return self
            time.sleep(pauses.next(f"Task {self.id} is {self.status}"))

    async def async_wait(self, timeout: Duration | None = None) -> TaskResult[R]:
        """Async version of `wait`."""
        import asyncio

        pauses = Pauses(timeout)
        while True:
            await sync_to_async(self.refresh, thread_sensitive=True)()
            if self.is_finished:
                await self.arefresh()
                return self
            await asyncio.sleep(pauses.next(f"Task {self.id} is {self.status}"))

    def successor(self, task_id: UUID) -> Self:
        """Return the handle on a task that was made from this one."""
        return type(self).of(row_of(task_id), self.definition)

    @property
    def _loaded(self) -> Task:
        if self._row is None:
            with naming_arefresh():
                self.refresh()
        assert self._row is not None
        return self._row

    def _take(self, task: Task) -> None:
        self._row = task
        self._args, self._kwargs, self._errors, self._attempts = None, None, None, None
        self._cancellation = None
        self.status = task.status
        self.attempts = task.attempt
        self.enqueued_at, self.ready_at = task.enqueued_at, task.ready_at
        self.started_at, self.finished_at = task.started_at, task.finished_at

    def know_arguments(self, args: str, kwargs: str) -> None:
        """Keep the arguments as they were written, as JSON text."""
        self._args, self._kwargs = args, kwargs

    def read_all(self) -> None:
        """Read everything that the attributes need."""
        assert self._loaded
        self._attempts = list(self._leases())
        self._read_cancellation()

    def _leases(self) -> Any:
        return Lease.objects.using(database_alias()).filter(task_id=self.id).order_by("attempt")

    def _read_errors(self) -> list[AttemptError]:
        return errors_of(self._loaded, self._seen_leases())

    def _read_cancellation(self) -> Cancellation | None:
        if self._cancellation is None:
            with naming_arefresh():
                self._cancellation = (cancellation_of(self._loaded, self._seen_leases()),)
        return self._cancellation[0]

    def _latest_lease(self) -> Lease | None:
        if self._attempts is None:
            with naming_arefresh():
                return cast("Lease | None", self._leases().last())
        return self._attempts[-1] if self._attempts else None

    def _seen_leases(self) -> list[Lease]:
        if self._attempts is None:
            with naming_arefresh():
                return list(self._leases())
        return self._attempts


def get_result(task_id: UUID | str) -> TaskResult[Any]:
    """Return the handle on a task by its id. Raises `TaskDoesNotExist`."""
    task = row_of(id_of(task_id))
    return TaskResult.of(task, registry.find(task.name))


class Pauses:
    """Growing pauses between two reads, until the timeout."""

    def __init__(self, timeout: Duration | None) -> None:
        self._end = None if timeout is None else time.monotonic() + seconds_of(timeout)
        self._timeout, self._pause = timeout, FIRST_PAUSE

    def next(self, waited_for: str) -> float:
        """Return the seconds until the next read. Raises TimeoutError with that text."""
        pause, self._pause = self._pause, min(LONGEST_PAUSE, self._pause * 1.5)
        if self._end is None:
            return pause
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{waited_for} after {self._timeout} s.")
        return min(pause, left)
