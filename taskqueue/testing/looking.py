"""What was enqueued: the tasks that a test sees, and those that fit what it expects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack
from unittest.mock import ANY
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from taskqueue.core.retries import seconds_of
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.arguments import check_unique_key
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.options import OPTIONS
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import Duration
from taskqueue.models import Task
from taskqueue.results import TaskResult
from taskqueue.testing.choices import Which, check_among, check_names, definition_of

ROUNDING = timedelta(milliseconds=1)
"""How far a stored delay may be from the one that was asked for."""


class Expected(TypedDict, total=False):
    """What a task may be expected to have; what is left out, or `mock.ANY`, may be anything."""

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

    definition: BaseDefinition[Any, Any] | None = None
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
        """Raises for what no task can ever be: it would be a mistake of the test."""
        check_names(expected, Expected.__annotations__)
        definition = None if which is None else definition_of(which)
        pattern = cls(definition, **_checked(expected))
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
        # In its normal form: one that is over means now.
        delay = timedelta(seconds=seconds_of(OPTIONS["run_after"].check(wanted)))
        return abs(task.run_after - task.enqueued_at - delay) < ROUNDING


def _checked(expected: Expected) -> dict[str, Any]:
    """What is expected, but for what may be anything. Raises for what can never be."""
    given = {name: value for name, value in expected.items() if value is not ANY}
    for name, value in given.items():
        if value is None:
            raise ValueError(f"{name} must not be None: leave it out where any will do.")
        if name in _CHECKS:
            _CHECKS[name](name, value)
        else:
            OPTIONS[name].check(value)
    return given


def _check_sequence(name: str, value: Any) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise TypeError(f"{name} must be a list or a tuple, not {value!r}.")


def _check_mapping(name: str, value: Any) -> None:
    # What it holds may be compared by more than JSON has, such as `mock.ANY`.
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict, not {value!r}.")


def _check_status(name: str, value: Any) -> None:
    check_among(name, value, tuple(map(str, TaskStatus)))


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "args": _check_sequence,
    "kwargs": _check_mapping,
    "metadata": _check_mapping,
    "status": _check_status,
    "unique_key": lambda _, value: check_unique_key(value),
}
"""Those that are not checked as the option of that name is."""


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

    `which` is a definition or its name; without it, tasks of all. Raises as `assert_enqueued` does
    for what never can be.
    """
    pattern = Pattern.of(which, expected)
    return results_of([task for task in rows() if pattern.fits(task)])


async def aenqueued(
    which: Which | None = None, **expected: Unpack[Expected]
) -> list[TaskResult[Any]]:
    """As `enqueued`, from async code."""
    return await sync_to_async(enqueued, thread_sensitive=True)(which, **expected)
