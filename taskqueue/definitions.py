"""`@task`: what turns a function into a definition, and the registry that finds it by name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from threading import RLock
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    cast,
    overload,
)

from asgiref.sync import async_to_sync, sync_to_async

from taskqueue import snapshots
from taskqueue.conf import get_settings
from taskqueue.exceptions import InvalidTask, TaskDoesNotExist, TaskResultMismatch, UnknownTask
from taskqueue.identity import is_same_function, is_same_place, place, run_of
from taskqueue.options import Options, check_options, check_together
from taskqueue.payload import encode
from taskqueue.signatures import Signature
from taskqueue.suggestions import did_you_mean
from taskqueue.unique_keys import check_names, make_key

if TYPE_CHECKING:
    from taskqueue.conf import Settings
    from taskqueue.context import Context
    from taskqueue.engine.rows import Request
    from taskqueue.outcomes import Outcome
    from taskqueue.results import TaskResult

P = ParamSpec("P")
R = TypeVar("R")
Call = tuple[Iterable[Any], Mapping[str, Any]]


class Definition(Generic[P, R]):
    """A function under `@task`, with its options. Immutable: `.using()` gives another."""

    def __init__(self, body: Callable[P, R], options: Options) -> None:
        self.body = body
        self.options = options
        self.name = options.name or f"{body.__module__}.{body.__qualname__}"
        self.is_async = inspect.iscoroutinefunction(body)
        self.request: tuple[Settings, Request] | None = None
        """What its enqueues share, under the settings that it was made for."""
        self.__doc__ = body.__doc__
        self.__name__ = getattr(body, "__name__", self.name)
        self.__module__ = body.__module__
        self.__qualname__ = getattr(body, "__qualname__", self.name)
        self.__wrapped__ = body

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    @cached_property
    def signature(self) -> Signature:
        """The parameters that an enqueue fills."""
        options = self.options
        return Signature(
            self.body, takes_context=options.takes_context, sensitive=options.sensitive
        )

    @cached_property
    def snapshot(self) -> str:
        """The options that the worker needs, as JSON text, to be stored with each task."""
        return snapshots.dump(self.options)

    @property
    def unique_scope(self) -> str:
        """Within which its unique keys are unique."""
        return self.options.unique_scope or self.name

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body here and now."""
        return self.body(*args, **kwargs)

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body here and now; an `async def` one to its end."""
        if self.is_async:
            return cast(R, async_to_sync(cast(Any, self.body))(*args, **kwargs))
        return self.body(*args, **kwargs)

    async def acall(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body here and now; a `def` one in a thread."""
        if self.is_async:
            return cast(R, await cast(Any, self.body)(*args, **kwargs))
        return await sync_to_async(self.body)(*args, **kwargs)

    def context_for(self, context: Context) -> Any:
        """What a body that takes its context is given."""
        return context

    def announce_start(self, context: Context) -> None:
        """Called in the worker's child before the body. Must not raise."""

    def announce_end(self, context: Context, outcome: Outcome, *, may_be_retried: bool) -> None:
        """Called in the worker's child after the body. Must not raise.

        `may_be_retried`: it failed, and another attempt follows.
        """

    def using(self, **options: Any) -> Definition[P, R]:
        """The same definition with other options. Raises `InvalidTask`."""
        changes = check_options(options, declared=False)
        if "backoff" in changes and not snapshots.is_storable(changes["backoff"]):
            raise InvalidTask(
                "A callable backoff belongs to the definition: set it in @task(backoff=...)."
            )
        changed = replace(self.options, **changes)
        check_together(changed, name=self.name)
        check_names(self.name, changed.unique_key, self.signature)
        return type(self)(self.body, changed)

    def encode(self, args: Any, kwargs: Any) -> tuple[str, str, str | None]:
        """Arguments and unique key as they are stored.

        Raises `ArgumentsDoNotBind`, `InvalidArguments` or `InvalidTask`.
        """
        self.signature.check(self.name, args, kwargs)
        limit = get_settings().MAX_ARGUMENTS
        args_text = encode(list(args), limit=limit, what="args") if args else "[]"
        kwargs_text = (
            encode(dict(kwargs), limit=limit - len(args_text), what="kwargs") if kwargs else "{}"
        )
        key = self.options.unique_key
        if key is not None and not isinstance(key, str):
            stored = args_text, kwargs_text
            key = make_key(key, self.signature, args, kwargs, stored=stored)
        return args_text, kwargs_text, key

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> TaskResult[R]:
        """Write one task, in the caller's transaction.

        Raises `ArgumentsDoNotBind` and `InvalidArguments` before anything is written,
        `DuplicateTask` under `on_duplicate="raise"`, and what the database raises. Where the
        `unique_scope` is shared, the result may be of another definition's task: see its `name`.
        """
        from taskqueue.results import enqueue

        return enqueue(self, args, kwargs)

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> TaskResult[R]:
        """As `enqueue`, from async code: of the holder of a key, all attributes may be read."""

        def write() -> TaskResult[R]:
            result = self.enqueue(*args, **kwargs)
            if not result.created:
                with suppress(TaskDoesNotExist):  # It may be deleted meanwhile.
                    result.read_all()
            return result

        return await sync_to_async(write, thread_sensitive=True)()

    def enqueue_many(self, calls: Iterable[Call]) -> list[TaskResult[R]]:
        """Write many tasks, all or none; results stand in the order of the calls.

        `calls` holds pairs of positional and keyword arguments. Raises as `enqueue` does.
        """
        from taskqueue.results import enqueue_many

        return enqueue_many(self, calls)

    async def aenqueue_many(self, calls: Iterable[Call]) -> list[TaskResult[R]]:
        """As `enqueue_many`, from async code."""
        return await sync_to_async(self.enqueue_many, thread_sensitive=True)(calls)

    def get_result(self, result_id: Any) -> TaskResult[R]:
        """The result of an earlier enqueue of this definition.

        Raises `TaskDoesNotExist`, and `TaskResultMismatch` for a task of another definition.
        """
        from taskqueue.results import get_result

        result = get_result(result_id)
        if result.name != self.name:
            raise TaskResultMismatch(
                f"Task {result.id} is one of {result.name}, not of {self.name}. "
                "taskqueue.results.get_result() reads a task of any definition."
            )
        return result

    async def aget_result(self, result_id: Any) -> TaskResult[R]:
        """As `get_result`, from async code: all attributes may be read there."""

        def read() -> TaskResult[R]:
            result = self.get_result(result_id)
            result.read_all()
            return result

        return await sync_to_async(read, thread_sensitive=True)()


class Registry:
    """All definitions of the project, by name; filled by importing each app's `tasks` module."""

    def __init__(self) -> None:
        self._definitions: dict[str, Definition[Any, Any]] = {}
        self._runs: dict[str, object] = {}
        """In which run of its module each was defined."""
        self._is_complete = False
        self._lock = RLock()

    def register(self, definition: Definition[Any, Any]) -> None:
        """Add a definition. Raises `InvalidTask` if another function has its name."""
        name, body = definition.name, definition.body
        known = self._definitions.get(name)
        if known is not None and not (
            is_same_function(known.body, body)
            or (is_same_place(known.body, body) and run_of(body) is not self._runs[name])
        ):
            raise InvalidTask(
                f"Two functions are named {name!r}: {place(known.body)} and "
                f"{place(body)}. Give one of them another name with @task(name=...)."
            )
        self._definitions[name] = definition
        self._runs[name] = run_of(body)

    def autodiscover(self) -> None:
        """Import the `tasks` module of every installed app, once."""
        from django.utils.module_loading import autodiscover_modules

        with self._lock:
            if not self._is_complete:
                autodiscover_modules("tasks")
                self._is_complete = True

    def find(self, name: str) -> Definition[Any, Any] | None:
        """The definition of that name, if there is one."""
        definition = self._definitions.get(name)
        if definition is None and not self._is_complete:
            self.autodiscover()
            definition = self._definitions.get(name)
        return self._adopt(name) if definition is None else definition

    def _adopt(self, name: str) -> Definition[Any, Any] | None:
        """A task of Django's framework that was declared for another of its backends."""
        if sys.modules.keys().isdisjoint(("django.tasks", "django_tasks")):
            return None
        from taskqueue.backend import adopt

        definition = adopt(name)
        if definition is not None:
            self.register(definition)
        return definition

    def get(self, name: str) -> Definition[Any, Any]:
        """The definition of that name. Raises `UnknownTask`, which suggests the nearest."""
        definition = self.find(name)
        if definition is None:
            raise UnknownTask(f"No task is named {name!r}." + did_you_mean(name, self._definitions))
        return definition

    def all(self) -> list[Definition[Any, Any]]:
        """All definitions, by name."""
        self.autodiscover()
        return [self._definitions[name] for name in sorted(self._definitions)]


registry = Registry()


def define(body: Callable[P, R], options: Mapping[str, Any]) -> Definition[P, R]:
    """A registered definition of the body. Raises `InvalidTask`."""
    _check_is_function(body)
    checked = Options(**check_options(options, declared=True))
    definition = Definition(body, checked)
    check_body(definition)
    registry.register(definition)
    return definition


def _check_is_function(body: object) -> None:
    if not inspect.isfunction(body):
        raise InvalidTask(f"@task stands on functions, not on {body!r}.")


def check_body(definition: Definition[Any, Any]) -> None:
    """Raise `InvalidTask` if the options of a definition do not fit its body."""
    body, options = definition.body, definition.options
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise InvalidTask(f"{definition.name} is a generator; a body must return its result.")
    if "<locals>" in body.__qualname__ and not options.name:
        raise InvalidTask(
            f"{body.__qualname__} is defined inside another function, where no worker finds it. "
            "Move it to the top of its module."
        )
    parameters = list(inspect.signature(body).parameters.values())
    if options.takes_context and not (
        parameters
        and parameters[0].kind
        in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    ):
        raise InvalidTask(f"{definition.name} takes its context as first argument, and has none.")
    if options.atomic and definition.is_async:
        raise InvalidTask(f"{definition.name}: atomic is for `def` bodies only.")
    unknown = options.sensitive - set(definition.signature.names)
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise InvalidTask(f"{definition.name} has no argument {sorted(unknown)[0]!r} to redact.")
    check_together(options, name=definition.name)
    check_names(definition.name, options.unique_key, definition.signature)
    definition.snapshot  # noqa: B018  (raises what cannot be stored)


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

    The options are those of the README's table; raises `InvalidTask` for a mistake in one.
    """
    if function is not None:
        return define(function, options)
    return lambda body: define(body, options)
