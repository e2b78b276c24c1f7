"""What was enqueued: the tasks that a test sees, and those that fit what it expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from taskqueue.definitions import Definition, registry
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import Duration
from taskqueue.models import Task
from taskqueue.results import TaskResult
from taskqueue.retries import seconds_of
from taskqueue.testing.choices import Which, definition_of

ROUNDING = timedelta(milliseconds=1)
"""How far a stored delay may be from the one that was asked for."""


class Expected(TypedDict, total=False):
    """What a task may be expected to have; what is left out may be anything."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    queue_name: str
    priority: int
    run_after: Duration | datetime
    unique_key: str
    metadata: Mapping[str, Any]
    status: str


@dataclass(frozen=True)
class Pattern:
    """The tasks of one definition, or of any, that have what is expected."""

    definition: Definition[Any, Any] | None = None
    _: KW_ONLY
    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    queue_name: str | None = None
    priority: int | None = None
    run_after: Duration | datetime | None = None
    unique_key: str | None = None
    metadata: Mapping[str, Any] | None = None
    status: str | None = None

    @classmethod
    def of(cls, which: Which | None, expected: Expected) -> Pattern:
        """Raises `UnknownTask` and `ArgumentsDoNotBind`: such tasks there can never be."""
        pattern = cls(None if which is None else definition_of(which), **expected)
        if pattern.definition is not None and pattern.has_arguments:
            args, kwargs = pattern.call
            pattern.definition.signature.check(pattern.definition.name, args, kwargs)
        return pattern

    @property
    def has_arguments(self) -> bool:
        """Whether it says how the body is to be called."""
        return self.args is not None or self.kwargs is not None

    @property
    def call(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments that are expected, as they are stored."""
        return plain(list(self.args or ())), plain(dict(self.kwargs or {}))

    def fits(self, task: Task) -> bool:
        """Whether a task has all that is expected."""
        if self.definition is not None and task.name != self.definition.name:
            return False
        for name in ("queue_name", "priority", "unique_key", "status"):
            wanted = getattr(self, name)
            if wanted is not None and wanted != getattr(task, name):
                return False
        if self.metadata is not None and plain(self.metadata) != task.metadata:
            return False
        return self._fits_arguments(task) and self._fits_time(task)

    def _fits_arguments(self, task: Task) -> bool:
        """As the body gets them, whether they were given by position or by name."""
        if not self.has_arguments:
            return True
        args, kwargs = self.call
        if (args, kwargs) == (task.args, task.kwargs):
            return True
        definition = self.definition or registry.find(task.name)
        if definition is None:
            return False
        wanted = definition.signature.bound(args, kwargs)
        given = definition.signature.bound(task.args, task.kwargs)
        return wanted is not None and plain(wanted) == plain(given)

    def _fits_time(self, task: Task) -> bool:
        wanted = self.run_after
        if wanted is None:
            return True
        if isinstance(wanted, datetime):
            return task.run_after == max(wanted, task.enqueued_at)
        delay = timedelta(seconds=seconds_of(wanted))
        return abs(task.run_after - task.enqueued_at - delay) < ROUNDING


def plain(value: Any) -> Any:
    """A value as it is stored; what JSON lacks, such as `mock.ANY`, stays what it is."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    return value


def rows(besides: frozenset[UUID] = frozenset()) -> list[Task]:
    """The tasks that the test sees, but for those, as they were enqueued."""
    found: QuerySet[Task] = Task.objects.using(database_alias()).order_by("enqueued_at", "id")
    return [task for task in found if task.id not in besides]


def results_of(tasks: Sequence[Task]) -> list[TaskResult[Any]]:
    """The handles on tasks."""
    return [TaskResult.of(task, registry.find(task.name)) for task in tasks]


def enqueued(which: Which | None = None, **expected: Unpack[Expected]) -> list[TaskResult[Any]]:
    """The tasks of a definition that were enqueued, whatever became of them since; oldest first.

    `which` is a definition or its name; without it, tasks of all. Raises `ArgumentsDoNotBind`
    for expected arguments with which it could not have been enqueued.
    """
    pattern = Pattern.of(which, expected)
    return results_of([task for task in rows() if pattern.fits(task)])


async def aenqueued(
    which: Which | None = None, **expected: Unpack[Expected]
) -> list[TaskResult[Any]]:
    """As `enqueued`, from async code."""
    return await sync_to_async(enqueued, thread_sensitive=True)(which, **expected)
