"""The tasks that a test has enqueued, and those that match what it expects."""

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
"""The largest difference between a stored delay and the expected one."""


class Expected(TypedDict, total=False):
    """Expected values of a task; a value that is left out, or `mock.ANY`, matches any."""

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
    """Expected tasks: of one definition or of any, with expected values."""

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
        """Return the checked pattern. Raises for expectations that no task can meet."""
        check_names(expected, Expected.__annotations__)
        definition = None if which is None else definition_of(which)
        pattern = cls(definition, **_checked(expected))
        if pattern.definition is not None and pattern.has_arguments:
            args, kwargs = pattern.call
            pattern.definition.signature.check(pattern.definition.name, args, kwargs)
        return pattern

    @property
    def has_arguments(self) -> bool:
        """Return whether it expects certain arguments."""
        return self.args is not None or self.kwargs is not None

    @property
    def call(self) -> tuple[list[Any], dict[str, Any]]:
        """Return the expected arguments, as they are stored."""
        return plain(list(self.args or ())), plain(dict(self.kwargs or {}))

    def fits(self, task: Task) -> bool:
        """Return whether a task matches."""
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
        """Compare arguments as the body receives them, by position or by name."""
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
    """Return the expected values without `mock.ANY`. Raises for impossible ones."""
    values = {name: value for name, value in expected.items() if value is not ANY}
    for name, value in values.items():
        if value is None:
            raise ValueError(f"{name} must not be None. Leave it out to match any.")
        if name in _CHECKS:
            _CHECKS[name](name, value)
        else:
            OPTIONS[name].check(value)
    return values


def _check_sequence(name: str, value: Any) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise TypeError(f"{name} must be a list or a tuple, not {value!r}.")


def _check_mapping(name: str, value: Any) -> None:
    # Its values may be more than JSON has, such as `mock.ANY`.
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
"""The checks of values that are not checked as the option of that name."""


def plain(value: Any) -> Any:
    """Return a value as it is stored; values that JSON lacks, such as `mock.ANY`, stay."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    return value


def rows(besides: frozenset[UUID] = frozenset()) -> list[Task]:
    """Return the tasks that the test sees, except these, in the order of their enqueue."""
    tasks: QuerySet[Task] = Task.objects.using(database_alias()).order_by("enqueued_at", "id")
    return [task for task in tasks if task.id not in besides]


def results_of(tasks: Sequence[Task]) -> list[TaskResult[Any]]:
    """Return the handles on tasks."""
    return [TaskResult.of(task, registry.find(task.name)) for task in tasks]


def enqueued(which: Which | None = None, **expected: Unpack[Expected]) -> list[TaskResult[Any]]:
    """Return the enqueued tasks of a definition, also finished ones, oldest first.

    `which` is a definition or its name; without it, tasks of all definitions match. Raises for
    impossible expectations, as `assert_enqueued` does.
    """
    pattern = Pattern.of(which, expected)
    return results_of([task for task in rows() if pattern.fits(task)])


async def aenqueued(
    which: Which | None = None, **expected: Unpack[Expected]
) -> list[TaskResult[Any]]:
    """Async version of `enqueued`."""
    return await sync_to_async(enqueued, thread_sensitive=True)(which, **expected)
