"""Assertions on what was enqueued."""

from __future__ import annotations

from typing import Any, Unpack

from asgiref.sync import sync_to_async

from taskqueue.models import Task
from taskqueue.results import TaskResult
from taskqueue.testing.choices import Which
from taskqueue.testing.describing import failure
from taskqueue.testing.looking import Expected, Pattern, results_of, rows


def assert_enqueued(
    which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
) -> list[TaskResult[Any]]:
    """Assert that so many tasks were enqueued that have what is expected; their handles.

    It counts what stands in the test's database, whatever became of it since. Arguments are
    compared as the body gets them; `unittest.mock.ANY` fits any. `run_after` is a datetime, or a
    delay from the enqueue. For what never can be, and so is a mistake of the test, it raises
    `UnknownTask`, `ArgumentsDoNotBind`, ValueError or TypeError.
    """
    _check_times(times)
    return _check(Pattern.of(which, expected), rows(), times)


def assert_not_enqueued(which: Which | None = None, **expected: Unpack[Expected]) -> None:
    """Assert that no task was enqueued that has all that is named here."""
    _check(Pattern.of(which, expected), rows(), 0)


async def aassert_enqueued(
    which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
) -> list[TaskResult[Any]]:
    """As `assert_enqueued`, from async code."""
    check = sync_to_async(assert_enqueued, thread_sensitive=True)
    return await check(which, times=times, **expected)


async def aassert_not_enqueued(which: Which | None = None, **expected: Unpack[Expected]) -> None:
    """As `assert_not_enqueued`, from async code."""
    await sync_to_async(assert_not_enqueued, thread_sensitive=True)(which, **expected)


class captured:  # noqa: N801  (read as a participle: `with captured() as tasks:`)
    """Gives a list that holds, at the end of the block, what was enqueued in it and still stands.

    For `with` and `async with`. What met the holder of its unique key is no new task.
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
    """As `assert_enqueued`, of what the block enqueues; with `times=0`, that it does not.

    An error that the block raises goes first.
    """

    def __init__(
        self, which: Which | None = None, *, times: int = 1, **expected: Unpack[Expected]
    ) -> None:
        super().__init__()
        _check_times(times)
        self._pattern = Pattern.of(which, expected)
        self._times = times

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self._results += _check(self._pattern, self._rows(), self._times)


def _check_times(times: int) -> None:
    """Raise ValueError for a number of tasks that there can never be."""
    if type(times) is not int or times < 0:
        raise ValueError(f"times must be a whole number from 0 on, not {times!r}.")


def _check(pattern: Pattern, seen: list[Task], times: int) -> list[TaskResult[Any]]:
    found = [task for task in seen if pattern.fits(task)]
    if len(found) != times:
        expected = f"{times} of" if times else "none of"
        raise AssertionError(failure(pattern, expected=expected, found=len(found), seen=seen))
    return results_of(found)
