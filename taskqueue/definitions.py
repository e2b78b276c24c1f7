"""`@task`: turn a function into a definition that can be enqueued."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NoReturn,
    ParamSpec,
    TypeVar,
    cast,
    overload,
)

from asgiref.sync import async_to_sync, sync_to_async

from taskqueue.core.suggestions import METHODS
from taskqueue.declarations.arguments import Call
from taskqueue.declarations.body_checks import check_body
from taskqueue.declarations.defaults import defaults_for
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.declarations.options import Options, check_options
from taskqueue.declarations.workflows.signing import Signing
from taskqueue.exceptions import InvalidTask, TaskDoesNotExist, TaskResultMismatch

if TYPE_CHECKING:
    from taskqueue.results import TaskResult

P = ParamSpec("P")
R = TypeVar("R")


class Definition(Signing, BaseDefinition[P, R]):
    """A function under `@task`, with its options. Immutable: `.using()` returns another."""

    if not TYPE_CHECKING:  # A type checker finds such names itself.

        def __getattr__(self, name: str) -> NoReturn:
            # Python calls this for missing attributes, such as `delay` for users of Celery.
            hint = ""
            if (ours := METHODS.get(name)) is not None:
                short = vars(self).get("__name__", "task")
                hint = f" Did you mean {short}.{ours}()?"
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}.{hint}")

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body in this process and wait for it."""
        return self.body(*args, **kwargs)

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body in this process and wait for it, even if it is an `async def`."""
        if self.is_async:
            return cast(R, async_to_sync(cast(Any, self.body))(*args, **kwargs))
        return self.body(*args, **kwargs)

    async def acall(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body in this process and wait for it, a `def` body in a thread."""
        if self.is_async:
            return cast(R, await cast(Any, self.body)(*args, **kwargs))
        return await sync_to_async(self.body)(*args, **kwargs)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> TaskResult[R]:
        """Write one task, in the caller's transaction.

        Raises `ArgumentsDoNotBind` and `InvalidArguments` before anything is written,
        `DuplicateTask` with `on_duplicate="raise"`, and errors of the database. If the
        `unique_scope` is shared, the result may be another definition's task: see its `name`.
        """
        from taskqueue.results import enqueue

        return enqueue(self, args, kwargs)

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> TaskResult[R]:
        """Async version of `enqueue`; if another task holds the key, all attributes can be read."""

        def write() -> TaskResult[R]:
            result = self.enqueue(*args, **kwargs)
            if not result.created:
                with suppress(TaskDoesNotExist):  # It may be deleted meanwhile.
                    result.read_all()
            return result

        return await sync_to_async(write, thread_sensitive=True)()

    def enqueue_many(self, calls: Iterable[Call]) -> Sequence[TaskResult[R]]:
        """Write many tasks, all or none; return their results in the order of the calls.

        Each result is made on first access. `calls` holds pairs of positional and keyword
        arguments. Raises as `enqueue` does.
        """
        from taskqueue.results import enqueue_many

        return enqueue_many(self, calls)

    async def aenqueue_many(self, calls: Iterable[Call]) -> Sequence[TaskResult[R]]:
        """Enqueue many tasks from async code."""
        return await sync_to_async(self.enqueue_many, thread_sensitive=True)(calls)

    def collect(self, event: Any, /, *, group: str = "") -> None:
        """Add an event to a group, in the caller's transaction; a task runs many of them at once.

        The body receives a list of events, as `@task(batch=Batch(...))` says. Raises `InvalidTask`
        for a definition without `batch`, and `InvalidArguments` if the event is not JSON or too
        large.
        """
        self.collect_many([event], group=group)

    def collect_many(self, events: Iterable[Any], /, *, group: str = "") -> None:
        """Add many events to a group, all or none. Raises as `collect` does."""
        from taskqueue.engine.batches.collecting import collect_many

        collect_many(self, events, group=group)

    async def acollect(self, event: Any, /, *, group: str = "") -> None:
        """Collect from async code."""
        await self.acollect_many([event], group=group)

    async def acollect_many(self, events: Iterable[Any], /, *, group: str = "") -> None:
        """Collect many events from async code."""
        await sync_to_async(self.collect_many, thread_sensitive=True)(events, group=group)

    def get_result(self, result_id: Any) -> TaskResult[R]:
        """Return the result of an earlier enqueue of this definition.

        Raises `TaskDoesNotExist`, and `TaskResultMismatch` for a task of another definition.
        """
        from taskqueue.results import get_result

        result = get_result(result_id)
        if result.name != self.name:
            raise TaskResultMismatch(
                f"Task {result.id} belongs to {result.name}, not to {self.name}. "
                "Use taskqueue.get_result() to read a task of any definition."
            )
        return result

    async def aget_result(self, result_id: Any) -> TaskResult[R]:
        """Async version of `get_result`; all attributes of the result can be read."""

        def read() -> TaskResult[R]:
            result = self.get_result(result_id)
            result.read_all()
            return result

        return await sync_to_async(read, thread_sensitive=True)()


def define(body: Callable[P, R], options: Mapping[str, Any]) -> Definition[P, R]:
    """Register and return a definition of the body. Raises `InvalidTask`."""
    _check_is_function(body)
    own = check_options(options, declared=True)
    name = own.get("name") or f"{body.__module__}.{body.__qualname__}"
    checked = Options(**{**defaults_for(name), **own})
    definition = Definition(body, checked)
    check_body(definition)
    registry.register(definition)
    return definition


def _check_is_function(body: object) -> None:
    if not inspect.isfunction(body):
        raise InvalidTask(f"@task decorates functions, not {body!r}.")


@overload
def task(function: Callable[P, R], /) -> Definition[P, R]: ...
@overload
def task(
    *, takes_context: Literal[True], **options: Any
) -> Callable[[Callable[Concatenate[Any, P], R]], Definition[P, R]]: ...
@overload
def task(
    *, takes_context: Literal[False] = False, **options: Any
) -> Callable[[Callable[P, R]], Definition[P, R]]: ...
def task(function: Any = None, /, **options: Any) -> Any:
    """Turn a function at the top of a module into a definition.

    docs/options.md lists the options. Those that are not given come from
    `TASKQUEUE["DEFAULTS"]`, if a pattern there matches the definition's name. Raises
    `InvalidTask` for an invalid option.
    """
    if function is not None:
        return define(function, options)
    return lambda body: define(body, options)
