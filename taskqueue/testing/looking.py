"""The tasks that a test has enqueued, and those that match what it expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack
from unittest.mock import ANY
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from taskqueue.core.retries import seconds_of
from taskqueue.core.states import TaskStatus
from taskqueue.declarations.arguments import check_unique_key
from taskqueue.declarations.definition import registry
from taskqueue.declarations.options import OPTIONS
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import Duration
from taskqueue.models import Task
from taskqueue.results import TaskResult
from taskqueue.testing.choices import Which, check_among, check_names, definition_of

# The largest difference between a stored delay and the expected one.
ROUNDING = timedelta(milliseconds=1)


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


class Pattern:
    """Expected tasks: of one definition or of any, with expected values.

    Raises for expectations that no task can meet.
    """

    def __init__(self, which: Which | None, expected: Expected) -> None:
        check_names(expected, Expected.__annotations__)
        self.definition = None if which is None else definition_of(which)
        self.expected: Mapping[str, Any] = {
            name: value for name, value in expected.items() if value is not ANY
        }
        for name, value in self.expected.items():
            _check(name, value)
        # The expected arguments, as they are stored.
        args = plain(list(self.expected.get("args", ())))
        kwargs = plain(dict(self.expected.get("kwargs", {})))
        self.call = (args, kwargs) if {"args", "kwargs"} & self.expected.keys() else None
        if self.definition is not None and self.call is not None:
            self.definition.signature.check(self.definition.name, args, kwargs)

    def fits(self, task: Task) -> bool:
        """Return whether a task matches."""
        if self.definition is not None and task.name != self.definition.name:
            return False
        stored = ("queue_name", "priority", "unique_key", "status", "metadata")
        return (
            all(
                plain(self.expected[name]) == getattr(task, name)
                for name in stored
                if name in self.expected
            )
            and self._fits_arguments(task)
            and self._fits_time(task)
        )

    def _fits_arguments(self, task: Task) -> bool:
        """Compare arguments as the body receives them, by position or by name."""
        if self.call is None or self.call == (task.args, task.kwargs):
            return True
        definition = self.definition or registry.find(task.name)
        if definition is None:
            return False
        wanted = definition.signature.bound(*self.call)
        given = definition.signature.bound(task.args, task.kwargs)
        return wanted is not None and plain(wanted) == plain(given)

    def _fits_time(self, task: Task) -> bool:
        wanted = self.expected.get("run_after")
        if wanted is None:
            return True
        if isinstance(wanted, datetime):
            return task.run_after == max(wanted, task.enqueued_at)
        # In its normal form: one that is over means now.
        delay = timedelta(seconds=seconds_of(OPTIONS["run_after"].check(wanted)))
        return abs(task.run_after - task.enqueued_at - delay) < ROUNDING


def _check(name: str, value: Any) -> None:
    """Raise ValueError, TypeError or `InvalidTask` for a value that no task can have."""
    if value is None:
        raise ValueError(f"{name} must not be None. Leave it out to match any.")
    match name:
        case "args":
            if not isinstance(value, Sequence) or isinstance(value, str | bytes):
                raise TypeError(f"{name} must be a list or a tuple, not {value!r}.")
        case "kwargs" | "metadata":
            # Its values may be more than JSON has, such as `mock.ANY`.
            if not isinstance(value, Mapping):
                raise TypeError(f"{name} must be a dict, not {value!r}.")
        case "status":
            check_among(name, value, tuple(map(str, TaskStatus)))
        case "unique_key":
            check_unique_key(value)
        case _:
            OPTIONS[name].check(value)


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


def results_of(tasks: Iterable[Task]) -> list[TaskResult[Any]]:
    """Return the handles on tasks."""
    return [TaskResult.of(task, registry.find(task.name)) for task in tasks]


def enqueued(which: Which | None = None, **expected: Unpack[Expected]) -> list[TaskResult[Any]]:
    """Return the enqueued tasks of a definition, also finished ones, oldest first.

    `which` is a definition or its name; without it, tasks of all definitions match. Raises for
    impossible expectations, as `assert_enqueued` does.
    """
    return results_of(filter(Pattern(which, expected).fits, rows()))


aenqueued = sync_to_async(enqueued, thread_sensitive=True)
