"""A task as it was when last read."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, cast
from uuid import UUID

from django.db.models import QuerySet

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.engine.connections import database_alias
from taskqueue.engine.payloads import Enqueued
from taskqueue.engine.result_parts import parts_of
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

R = TypeVar("R")
# Attributes that are kept until the task is read again.
OF_THE_ROW = ("args", "kwargs", "errors", "_cancellation")


class TaskSnapshot(Generic[R]):
    """One task, with its attributes as last read; `refresh()` reads them again."""

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
        self._texts: tuple[str, str] | None = None
        self._attempts: list[Lease] | None = None

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
        return f"<{type(self).__name__} {self.id} {self.status}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskSnapshot) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def name(self) -> str:
        """The name of the definition."""
        if self._name is None:
            self._name = self.definition.name if self.definition else self._loaded.name
        return self._name

    @cached_property
    def args(self) -> list[Any]:
        """The positional arguments, as JSON stores them."""
        return self._loaded.args if self._texts is None else list(json.loads(self._texts[0]))

    @cached_property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments, as JSON stores them."""
        return self._loaded.kwargs if self._texts is None else dict(json.loads(self._texts[1]))

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

    @cached_property
    def errors(self) -> list[AttemptError]:
        """Return the errors of attempts, oldest first; they are kept after a later success."""
        return errors_of(self._loaded, self._seen_leases())

    @property
    def cancelled_by(self) -> str:
        """The person who cancelled the task or asked it to stop; empty if nobody did."""
        return self._cancellation.by if self._cancellation else ""

    @property
    def cancel_reason(self) -> str:
        """Return the reason of the cancellation or request to stop; empty if there is none."""
        return self._cancellation.reason if self._cancellation else ""

    @cached_property
    def _cancellation(self) -> Cancellation | None:
        with naming_arefresh():
            return cancellation_of(self._loaded, self._seen_leases())

    @property
    def history(self) -> list[AttemptRecord]:
        """Return all attempts of all workers, oldest first, with results, errors and times."""
        return [record_of(lease) for lease in self._seen_leases()]

    @property
    def progress(self) -> Progress:
        """Return the progress of the latest attempt: the current one, or as `arefresh` read it.

        A success is 100 percent if its body reported any progress.
        """
        if self._attempts is None:
            with naming_arefresh():
                lease = self._leases().last()
        else:
            lease = self._attempts[-1] if self._attempts else None
        if lease is None:
            return Progress(None, "")
        return Progress(lease.progress, lease.progress_message, lease.progress_detail)

    @property
    def checkpoint(self) -> Any:
        """Return the last checkpoint that a body stored; None if there is none."""
        states = [lease.checkpoint for lease in self._seen_leases()]
        return next((state for state in reversed(states) if state is not None), None)

    @property
    def parts(self) -> list[Any]:
        """Read the parts of the result that the latest attempt has written so far."""
        return self.parts_of(self.attempts)

    def parts_of(self, attempt: int) -> list[Any]:
        """Read the parts of the result that an attempt wrote, in their order."""
        return [part.value for part in parts_of(self.id, attempt)]

    @property
    def worker_names(self) -> list[str]:
        """Return the worker of each attempt."""
        return [lease.worker_id for lease in self._seen_leases()]

    def refresh(self) -> None:
        """Read the task again. Raises `TaskDoesNotExist` if it was deleted."""
        self._take(row_of(self.id))

    @property
    def _loaded(self) -> Task:
        if self._row is None:
            with naming_arefresh():
                self.refresh()
        assert self._row is not None
        return self._row

    def _take(self, task: Task) -> None:
        self._row = task
        self._texts = self._attempts = None
        for name in OF_THE_ROW:
            self.__dict__.pop(name, None)
        self.status = task.status
        self.attempts = task.attempt
        self.enqueued_at, self.ready_at = task.enqueued_at, task.ready_at
        self.started_at, self.finished_at = task.started_at, task.finished_at

    def know_arguments(self, args: str, kwargs: str) -> None:
        """Keep the arguments as they were written, as JSON text."""
        self._texts = args, kwargs

    def read_all(self) -> None:
        """Read everything that the attributes need."""
        assert self._loaded
        self._attempts = list(self._leases())
        assert self.cancelled_by is not None

    def _leases(self) -> QuerySet[Lease]:
        return Lease.objects.using(database_alias()).filter(task_id=self.id).order_by("attempt")

    def _seen_leases(self) -> list[Lease]:
        if self._attempts is None:
            with naming_arefresh():
                return list(self._leases())
        return self._attempts
