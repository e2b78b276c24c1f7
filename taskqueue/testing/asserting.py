"""Assertions on enqueued tasks, and what they say when they fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from asgiref.sync import sync_to_async

from taskqueue.declarations.redaction import ShownArguments, redacted, redacted_for
from taskqueue.models import Task
from taskqueue.results import TaskResult
from taskqueue.testing.choices import Which
from taskqueue.testing.looking import Expected, Pattern, results_of, rows

MOST = 20
# Characters of one task's arguments.
LONGEST = 200


def assert_enqueued(
    which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
) -> list[TaskResult[Any]]:
    """Assert that this many tasks were enqueued that match, and return their handles.

    It counts the tasks in the test's database, also finished ones. Arguments are compared as the
    body receives them; `unittest.mock.ANY` equals any value. `run_after` is a datetime, or a delay
    from the enqueue. Raises `UnknownTask`, `ArgumentsDoNotBind`, ValueError or TypeError for
    expectations that no task can meet.
    """
    _check_times(times)
    return _check(Pattern(which, expected), rows(), times)


def assert_not_enqueued(which: Which | None = None, **expected: Unpack[Expected]) -> None:
    """Assert that no task was enqueued that matches."""
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
        self._results += results_of(self._rows())

    async def __aenter__(self) -> list[TaskResult[Any]]:
        return await sync_to_async(self.__enter__, thread_sensitive=True)()

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        await sync_to_async(self.__exit__, thread_sensitive=True)(kind, error, trace)

    def _rows(self) -> list[Task]:
        return rows(besides=self._before)


class assert_enqueues(captured):  # noqa: N801
    """Assert that the block enqueues this many tasks that match; see `assert_enqueued`.

    An error of the block is raised instead.
    """

    def __init__(
        self, which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
    ) -> None:
        super().__init__()
        _check_times(times)
        self._pattern = Pattern(which, expected)
        self._times = times

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self._results += _check(self._pattern, self._rows(), self._times)


def _check_times(times: int) -> None:
    """Raise ValueError unless `times` is a number of tasks."""
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
        text += _call(shown.args, shown.kwargs)
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
    call = "(…)" if shown is None else _call(shown.args, shown.kwargs)
    parts = [f"queue_name={task.queue_name!r}"]
    if task.priority:
        parts.append(f"priority={task.priority}")
    if task.run_after != task.enqueued_at:
        parts.append(f"run_after={task.run_after.isoformat()}")
    if task.unique_key is not None:
        parts.append(f"unique_key={task.unique_key!r}")
    return f"{task.name}{call} with {', '.join(parts)}: {task.status}"


def _call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    named = [f"{name}={value!r}" for name, value in kwargs.items()]
    text = ", ".join([*map(repr, args), *named])
    return f"({text})" if len(text) <= LONGEST else f"({text[:LONGEST]}…)"
