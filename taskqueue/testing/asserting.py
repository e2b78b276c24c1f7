"""Assertions on enqueued tasks, and their failure messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
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
from taskqueue.declarations.redaction import ShownArguments, redacted, redacted_for
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import Duration, InvalidArguments
from taskqueue.models import Task
from taskqueue.results import TaskResult
from taskqueue.testing.choices import Which, check_among, check_names, definition_of

MOST = 20
# The most characters of a task's arguments in a message.
LONGEST = 200


def assert_enqueued(
    which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
) -> list[TaskResult[Any]]:
    """Assert that this many matching tasks were enqueued, and return their handles.

    It counts the tasks in the test's database, also finished ones. Arguments are compared as the
    body receives them; `unittest.mock.ANY` equals any value. `run_after` is a datetime, or a delay
    from the enqueue. Raises `UnknownTask`, `ArgumentsDoNotBind`, ValueError or TypeError for
    expectations that no task can meet.
    """
    check_times(times)
    return _check(Pattern(which, expected), rows(), times)


def assert_not_enqueued(which: Which | None = None, **expected: Unpack[Expected]) -> None:
    """Assert that no matching task was enqueued."""
    _check(Pattern(which, expected), rows(), 0)


aassert_enqueued = sync_to_async(assert_enqueued, thread_sensitive=True)
aassert_not_enqueued = sync_to_async(assert_not_enqueued, thread_sensitive=True)


class captured:  # noqa: N801  (read as a participle: `with captured() as tasks:`)
    """Return a list that, at the end of the block, holds the tasks enqueued in it.

    For `with` and `async with`. Tasks that were rolled back, and calls whose unique key another
    task held, are not in it.
    """

    def __init__(self) -> None:
        self._results: list[TaskResult[Any]] = []

    def __enter__(self) -> list[TaskResult[Any]]:
        self._before = frozenset(task.id for task in rows())
        return self._results

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._results += results_of(rows(besides=self._before))

    async def __aenter__(self) -> list[TaskResult[Any]]:
        return await sync_to_async(self.__enter__, thread_sensitive=True)()

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        await sync_to_async(self.__exit__, thread_sensitive=True)(kind, error, trace)


class assert_enqueues(captured):  # noqa: N801
    """Assert that the block enqueues this many matching tasks; see `assert_enqueued`.

    If the block raises, its exception is raised instead.
    """

    def __init__(
        self, which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
    ) -> None:
        super().__init__()
        check_times(times)
        self._pattern = Pattern(which, expected)
        self._times = times

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self._results += _check(self._pattern, rows(besides=self._before), self._times)


def check_times(times: int) -> None:
    """Raise ValueError unless `times` is a number of tasks or workflows."""
    if type(times) is not int or times < 0:
        raise ValueError(f"times must be a whole number of 0 or more, not {times!r}.")


def _check(pattern: Pattern, seen: list[Task], times: int) -> list[TaskResult[Any]]:
    matching = list(filter(pattern.fits, seen))
    if len(matching) != times:
        expected = f"{times} of" if times else "none of"
        found = f"found {len(matching)}. {_listing(seen)}"
        raise AssertionError(f"Expected {expected} {_wanted(pattern)}; {found}")
    return results_of(matching)


def _wanted(pattern: Pattern) -> str:
    """Return the expected task in words. Sensitive arguments are redacted."""
    text = "task" if pattern.definition is None else pattern.definition.name
    if pattern.call is not None:
        shown = ShownArguments(*pattern.call)
        if pattern.definition is not None:
            shown = redacted_for(pattern.definition, *shown)
        text += shown_call(shown.args, shown.kwargs)
    others = [
        f"{name}={pattern.expected[name]!r}"
        for name in Expected.__annotations__
        if name in pattern.expected and name not in ("args", "kwargs")
    ]
    return f"{text} with {', '.join(others)}" if others else text


def _listing(tasks: Sequence[Task]) -> str:
    """Return the enqueued tasks, one per line."""
    if not tasks:
        return "Nothing was enqueued."
    lines = [f"  {_line(task)}" for task in tasks[:MOST]]
    if len(tasks) > MOST:
        lines.append(f"  … and {len(tasks) - MOST} more")
    return "\n".join(["Enqueued:", *lines])


def _line(task: Task) -> str:
    shown = redacted(task.name, task.args, task.kwargs)
    call = "(…)" if shown is None else shown_call(shown.args, shown.kwargs)
    parts = [f"queue_name={task.queue_name!r}"]
    if task.priority:
        parts.append(f"priority={task.priority}")
    if task.run_after != task.enqueued_at:
        parts.append(f"run_after={task.run_after.isoformat()}")
    if task.unique_key is not None:
        parts.append(f"unique_key={task.unique_key!r}")
    return f"{task.name}{call} with {', '.join(parts)}: {task.status}"


def shown_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return arguments as written in a call, shortened if they are long."""
    named = [f"{name}={value!r}" for name, value in kwargs.items()]
    text = ", ".join([*map(repr, args), *named])
    return f"({text})" if len(text) <= LONGEST else f"({text[:LONGEST]}…)"


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
            _check_value(name, value)
        # The expected arguments, as they are stored.
        args = plain(list(self.expected.get("args", ())))
        kwargs = plain(dict(self.expected.get("kwargs", {})))
        self.call = (args, kwargs) if {"args", "kwargs"} & self.expected.keys() else None
        if self.definition is not None and self.call is not None:
            self.definition.signature.check(self.definition.name, args, kwargs)
            with suppress(InvalidArguments):  # Values such as `mock.ANY` cannot be stored.
                self.call = self.definition.stored(args, kwargs, checks=False)

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
        # In its normal form, in which a time in the past means now.
        delay = timedelta(seconds=seconds_of(OPTIONS["run_after"].check(wanted)))
        return abs(task.run_after - task.enqueued_at - delay) < ROUNDING


def _check_value(name: str, value: Any) -> None:
    """Raise ValueError, TypeError or `InvalidTask` for a value that no task can have."""
    if value is None:
        raise ValueError(f"{name} must not be None. Leave it out to match any.")
    match name:
        case "args":
            if not isinstance(value, Sequence) or isinstance(value, str | bytes):
                raise TypeError(f"{name} must be a list or a tuple, not {value!r}.")
        case "kwargs" | "metadata":
            # Its values may include some that JSON lacks, such as `mock.ANY`.
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
    """Return the tasks that the test sees, except `besides`, in the order of their enqueue."""
    tasks: QuerySet[Task] = Task.objects.using(database_alias()).order_by("enqueued_at", "id")
    return [task for task in tasks if task.id not in besides]


def results_of(tasks: Iterable[Task]) -> list[TaskResult[Any]]:
    """Return the handles on tasks."""
    return [TaskResult.of(task, registry.find(task.name)) for task in tasks]


def enqueued(which: Which | None = None, **expected: Unpack[Expected]) -> list[TaskResult[Any]]:
    """Return the enqueued tasks of a definition, including finished ones, oldest first.

    `which` is a definition or its name; without it, tasks of all definitions match. Raises for
    impossible expectations, as `assert_enqueued` does.
    """
    return results_of(filter(Pattern(which, expected).fits, rows()))


aenqueued = sync_to_async(enqueued, thread_sensitive=True)
