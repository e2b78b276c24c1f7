"""The verbs of a handle: each calls a verb of the engine and reads the task again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, Self, TypeVar
from uuid import UUID

from asgiref.sync import sync_to_async

from taskqueue import control
from taskqueue.declarations.option_kinds import Moment

P = ParamSpec("P")
T = TypeVar("T")


class TaskVerbs:
    """The verbs, with `by` and `reason` for the audit; `by` may be a user object.

    Each raises `TransitionRefused` if the task's status does not allow it, and `TaskDoesNotExist`.
    Async code uses the versions that begin with `a`; all attributes may be read after them.
    """

    @property
    def id(self) -> UUID:
        """The id of the task."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Read the task again."""
        raise NotImplementedError

    def read_all(self) -> None:
        """Read everything that the attributes need."""
        raise NotImplementedError

    def successor(self, task_id: UUID) -> Self:
        """Return the handle on a task that was made from this one."""
        raise NotImplementedError

    def cancel(self, reason: str = "", *, by: object = "") -> None:
        """Cancel the task: a waiting one ends now, a running one is asked to stop.

        An attempt whose worker is lost ends at once, as with `request_stop`.
        """
        control.cancel(self.id, by=by, reason=reason)
        self.refresh()

    def request_stop(self, reason: str = "", *, by: object = "") -> None:
        """Ask a running task to stop; after a grace period it is interrupted, after another killed.

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
        """Run a finished task again; with other arguments, return the handle on a new task.

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
        return self.successor(new_id)

    def run_now(self, reason: str = "", *, by: object = "") -> None:
        """Make the task ready, if it waits for its time."""
        control.run_now(self.id, by=by, reason=reason)
        self.refresh()

    def reschedule(self, run_after: Moment, reason: str = "", *, by: object = "") -> None:
        """Give a waiting task another time: a datetime, or a duration from now.

        Raises `InvalidTask` for an impossible time.
        """
        control.reschedule(self.id, run_after, by=by, reason=reason)
        self.refresh()

    def update(self, reason: str = "", *, by: object = "", **changes: Any) -> bool:
        """Change options, such as `priority=5`, of an unfinished task; return whether any changed.

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
