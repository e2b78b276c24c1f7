"""What a handle can do to its task: each a verb of the engine, then a look at what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, Self, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async

from taskqueue.declarations.option_kinds import Moment
from taskqueue.engine import control

P = ParamSpec("P")
T = TypeVar("T")


class TaskVerbs:
    """The verbs, with `by` and `reason` for the audit; `by` may be a user object.

    Each raises `TransitionRefused` where the task's status does not allow it, and
    `TaskDoesNotExist`. Async code uses the twins that begin with `a`:
    all attributes may be read after them.
    """

    @property
    def id(self) -> UUID:
        """The id of the task."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Read the task again."""
        raise NotImplementedError

    def read_all(self) -> None:
        """Read what a look at any attribute would read."""
        raise NotImplementedError

    def successor(self, task_id: UUID) -> Self:
        """The handle on a task that this one gave rise to."""
        raise NotImplementedError

    def cancel(self, reason: str = "", *, by: object = "") -> None:
        """Cancel it: what waits ends now, what runs is asked to stop.

        An attempt whose worker is lost ends at once, as with `request_stop`.
        """
        control.cancel(self.id, by=by, reason=reason)
        self.refresh()

    def request_stop(self, reason: str = "", *, by: object = "") -> None:
        """Ask a running task to stop; after a grace it is interrupted, after another killed.

        An attempt whose worker is lost (silent for longer than its lease) ends at once, and the
        task is cancelled. If the worker's host is only cut off from the database, the body may
        still run there until the worker reaches the database again.
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
        """Run a finished task again; with other arguments as a new task, which is given back.

        A running task whose worker is lost is ready at once: its attempt ends, with the same
        warning as for `request_stop`.

        What is None of `args` and `kwargs` stays as it was. Raises `ArgumentsDoNotBind` and
        `InvalidArguments`.
        """
        if args is None and kwargs is None:
            control.retry(self.id, by=by, reason=reason)
            self.refresh()
            return self
        new_id = control.retry_with(self.id, args=args, kwargs=kwargs, by=by, reason=reason)
        return self.successor(new_id)

    def run_now(self, reason: str = "", *, by: object = "") -> None:
        """Make it ready, if it waits for its time."""
        control.run_now(self.id, by=by, reason=reason)
        self.refresh()

    def reschedule(self, run_after: Moment, reason: str = "", *, by: object = "") -> None:
        """Give it another time, if it waits: a datetime, or a duration from now.

        Raises `InvalidTask` for a time that cannot be.
        """
        control.reschedule(self.id, run_after, by=by, reason=reason)
        self.refresh()

    def update(self, reason: str = "", *, by: object = "", **changes: Any) -> bool:
        """Change its terms, such as `priority=5`, before it has finished; whether any changed.

        Raises `InvalidTask`, naming what may change.
        """
        changed = control.update(self.id, changes, by=by, reason=reason)
        self.refresh()
        return changed

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

    async def aupdate(self, reason: str = "", *, by: object = "", **changes: Any) -> bool:
        """Async version of `update`."""
        return await self._read_after(self.update, reason, by=by, **changes)

    async def _read_after(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb, and read all attributes of the handle that has its task."""

        def call() -> T:
            answer = verb(*args, **kwargs)
            (answer if isinstance(answer, TaskVerbs) else self).read_all()
            return answer

        return await sync_to_async(call, thread_sensitive=True)()
