"""The handle for a task: its attributes and its verbs."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ParamSpec, Self, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError

from taskqueue import control
from taskqueue.core.log_levels import level_number
from taskqueue.core.retries import seconds_of
from taskqueue.declarations.definition import registry
from taskqueue.declarations.event_filters import EventFilter
from taskqueue.declarations.time_kinds import Moment
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.locking import id_of
from taskqueue.engine.events.following import follow
from taskqueue.engine.events.reading import FeedEvent
from taskqueue.exceptions import Duration
from taskqueue.results.reading import LogLine, lines_of, row_of
from taskqueue.results.snapshot import TaskSnapshot

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
# The pauses of a `wait` between two reads grow from the first to the second, in seconds.
FINAL_EVENTS = frozenset({"task.succeeded", "task.failed", "task.cancelled"})
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5


class TaskResult(TaskSnapshot[R]):
    """A handle on one task. Its attributes are as last read; `refresh()` reads them again.

    Verbs take `by`, which may be a user object, and `reason` for the audit. Each raises
    `TransitionRefused` if the task's status does not allow it, and `TaskDoesNotExist`. Async code
    uses the versions that begin with `a`; all attributes may be read after them.
    """

    def wait(self, timeout: Duration | None = None) -> Self:
        """Wait until the task has finished, then read it again.

        Raises TimeoutError after `timeout` seconds. Do not wait within the transaction that
        enqueued the task: workers see it only once that is committed.
        """
        for pause in growing_pauses(timeout):
            self.refresh()
            if self.is_finished:
                return self
            time.sleep(pause)
        raise still_waiting(f"Task {self.id} is {self.status}", timeout)

    async def async_wait(self, timeout: Duration | None = None) -> Self:
        """Async version of `wait`."""
        import asyncio

        for pause in growing_pauses(timeout):
            await sync_to_async(self.refresh, thread_sensitive=True)()
            if self.is_finished:
                await self.arefresh()
                return self
            await asyncio.sleep(pause)
        state = f"Task {self.id} is {self.status}"
        raise await sync_to_async(still_waiting, thread_sensitive=True)(state, timeout)

    def logs(
        self, *, attempt: int | None = None, level: int | str = logging.NOTSET
    ) -> list[LogLine]:
        """Read the captured log lines, in their order: of all attempts, or of one.

        `level` leaves out lower ones: a level of `logging`, as a number or a name in any case.
        Raises ValueError for another name. At most `MAX_LOG` bytes an attempt.
        """
        return lines_of(self.id, attempt=attempt, level=level_number(level))

    async def alogs(
        self, *, attempt: int | None = None, level: int | str = logging.NOTSET
    ) -> list[LogLine]:
        """Async version of `logs`."""
        return await sync_to_async(self.logs, thread_sensitive=True)(attempt=attempt, level=level)

    async def events(self, *, after: int | None = None) -> AsyncIterator[FeedEvent]:
        """Yield the events of the task as they come, until it has ended.

        They start after the event with the number `after`, or from now on. Workers notice within
        two seconds that somebody listens, so the first events of a short task may be missed. If the
        connection to the database is lost, it continues after the last event once the database is
        back; after five minutes it raises.
        """
        wanted = EventFilter.of(task=self.id)

        async def is_over() -> bool:
            await sync_to_async(self.refresh, thread_sensitive=True)()
            return self.is_finished

        async for page in follow(wanted, after=after, is_over=is_over, look_every=1.0):
            for event in page.events:
                yield event
                if event.kind in FINAL_EVENTS:
                    # While the database is away, the stream waits for it, and asks again.
                    with suppress(OperationalError, InterfaceError):
                        await self.arefresh()
                        if self.is_finished:
                            return

    def cancel(self, reason: str = "", *, by: object = "") -> None:
        """Cancel the task: a waiting one ends now, a running one is asked to stop.

        An attempt whose worker is lost ends at once, as with `request_stop`.
        """
        control.cancel(self.id, by=by, reason=reason)
        self.refresh()

    def request_stop(self, reason: str = "", *, by: object = "") -> None:
        """Ask a running task to stop; after a grace period it is interrupted, after another killed.

        An attempt whose worker is lost (silent for longer than its lease) ends at once, and the
        task is cancelled. If the worker's host is only disconnected from the database, the body
        may still run there until the worker reaches the database again.
        """
        control.request_stop(self.id, by=by, reason=reason)
        self.refresh()

    def retry(
        self,
        reason: str = "",
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        by: object = "",
    ) -> Self:
        """Run a finished task again; with other arguments, return the handle for a new task.

        A running task whose worker is lost is ready at once: its attempt ends, with the same
        warning as for `request_stop`.

        `None` leaves `args` or `kwargs` unchanged. Raises `ArgumentsDoNotBind` and
        `InvalidArguments`.
        """
        if args is None and kwargs is None:
            control.retry(self.id, by=by, reason=reason)
            self.refresh()
            return self
        new_id = control.retry_with(self.id, args=args, kwargs=kwargs, by=by, reason=reason)
        return type(self).of(row_of(new_id), self.definition)

    def run_now(self, reason: str = "", *, by: object = "") -> None:
        """Make the task ready now, if it waits for its time."""
        control.run_now(self.id, by=by, reason=reason)
        self.refresh()

    def reschedule(self, run_after: Moment, reason: str = "", *, by: object = "") -> None:
        """Give a waiting task another time: a datetime, or a duration from now.

        Raises `InvalidTask` for an impossible time.
        """
        control.reschedule(self.id, run_after, by=by, reason=reason)
        self.refresh()

    def update(
        self,
        reason: str = "",
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        by: object = "",
        **changes: Any,
    ) -> bool:
        """Change options, such as `priority=5`, of an unfinished task; return whether any changed.

        While the task waits, its `args`, `kwargs`, `deadline`, `expires_after` and `metadata` can
        be changed too. Raises `InvalidTask`, which names what may change, `ArgumentsDoNotBind` and
        `InvalidArguments`.
        """
        changed = control.update(self.id, changes, args=args, kwargs=kwargs, by=by, reason=reason)
        self.refresh()
        return changed

    async def arefresh(self) -> None:
        """Async version of `refresh`: all attributes may then be read in async code too."""
        await self._read_after(self.refresh)

    async def acancel(self, reason: str = "", *, by: object = "") -> None:
        """Async version of `cancel`."""
        await self._read_after(self.cancel, reason, by=by)

    async def arequest_stop(self, reason: str = "", *, by: object = "") -> None:
        """Async version of `request_stop`."""
        await self._read_after(self.request_stop, reason, by=by)

    async def aretry(
        self,
        reason: str = "",
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        by: object = "",
    ) -> Self:
        """Async version of `retry`."""
        return await self._read_after(self.retry, reason, args=args, kwargs=kwargs, by=by)

    async def arun_now(self, reason: str = "", *, by: object = "") -> None:
        """Async version of `run_now`."""
        await self._read_after(self.run_now, reason, by=by)

    async def areschedule(self, run_after: Moment, reason: str = "", *, by: object = "") -> None:
        """Async version of `reschedule`."""
        await self._read_after(self.reschedule, run_after, reason, by=by)

    async def aupdate(
        self,
        reason: str = "",
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        by: object = "",
        **changes: Any,
    ) -> bool:
        """Async version of `update`."""
        return await self._read_after(
            self.update, reason, args=args, kwargs=kwargs, by=by, **changes
        )

    async def _read_after(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb, and read all attributes of the handle that has its task."""

        def call() -> T:
            answer = verb(*args, **kwargs)
            (answer if isinstance(answer, TaskResult) else self).read_all()
            return answer

        return await sync_to_async(call, thread_sensitive=True)()


def get_result(task_id: UUID | str) -> TaskResult[Any]:
    """Return the handle for the task with this id. Raises `TaskDoesNotExist`."""
    task = row_of(id_of(task_id))
    return TaskResult.of(task, registry.find(task.name))


def still_waiting(state: str, timeout: Duration | None) -> TimeoutError:
    """Return the error of a wait that took too long. In a transaction, it says a likely cause."""
    text = f"{state} after {timeout} s."
    if project_connection().in_atomic_block:
        text += (
            " The wait is within a transaction. What that transaction enqueued, workers see only "
            "once it is committed: wait after the atomic() block."
        )
    return TimeoutError(text)


def growing_pauses(timeout: Duration | None) -> Iterator[float]:
    """Yield the seconds to pause after each read; the last one, when the time is over, is 0."""
    end = math.inf if timeout is None else time.monotonic() + seconds_of(timeout)
    pause, left = FIRST_PAUSE, math.inf
    while left > 0:
        left = max(0.0, end - time.monotonic())
        yield min(pause, left)
        pause = min(LONGEST_PAUSE, pause * 1.5)
