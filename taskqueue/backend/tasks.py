"""Tasks of Django's framework with the options of taskqueue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from asgiref.sync import sync_to_async

from taskqueue import exceptions
from taskqueue.backend.framework import AnyResult, AnyTask, InvalidTask, Task
from taskqueue.declarations.arguments import Call
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.options import Options, check_options
from taskqueue.declarations.workflows.signing import Signing
from taskqueue.exceptions import Duration

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
DJANGO_FIELDS = frozenset(field.name for field in fields(Task))
# The defaults of Django 6.1; the fields of 6.0 have none.
DEFAULTS = {"priority": 0, "backend": "default", "queue_name": "default", "run_after": None}


class Lazy:
    """A frozen record whose missing fields are read from the database on first use.

    The base of a subclass, with a `__dict__`, of a dataclass with slots. A worker's child knows the
    id and the function of a task, which is all that Django's logging needs. It opens no connection
    for fields that nobody reads.
    """

    def __getattr__(self, name: str) -> Any:
        # Python calls this for a slot that was never filled.
        state = self.__dict__
        if name not in state.get("_missing", ()):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        values = state["_read"]()
        for missing in state["_missing"]:
            object.__setattr__(self, missing, values[missing])
        object.__setattr__(self, "_missing", frozenset())
        return getattr(self, name)


def make(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return a record of these values, which are not validated again."""
    record = kind.__new__(kind)
    for name, value in values.items():
        object.__setattr__(record, name, value)
    return record


def make_lazy(
    kind: type[T],
    values: Mapping[str, Any],
    missing: frozenset[str],
    read: Callable[[], Mapping[str, Any]],
) -> T:
    """Return a record of these values, which calls `read` for the missing ones, once."""
    return make(kind, {**values, "_missing": missing - values.keys(), "_read": read})


class InvalidQueueTask(InvalidTask, exceptions.InvalidTask):
    """An impossible task or option: both Django's error and ours."""


@contextmanager
def errors_of_django() -> Iterator[None]:
    """Raise our `InvalidTask` as an error that is also Django's."""
    try:
        yield
    except exceptions.InvalidTask as error:
        if isinstance(error, InvalidTask):
            raise
        raise InvalidQueueTask(str(error)) from error


@dataclass(frozen=True, kw_only=True, init=False)
class QueueTask(Signing, Lazy, AnyTask):
    """A task whose decorator and `.using()` take the options of `taskqueue.task` as well."""

    # The given options of taskqueue, in their normal form.
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __init__(self, *, options: Mapping[str, Any] | None = None, **given: Any) -> None:
        """Raise Django's `InvalidTask` for an option that is unknown or out of range.

        Without `options` the task is a declaration, which workers find; with them it is a copy.
        """
        own = {name: given.pop(name) for name in given.keys() & DJANGO_FIELDS}
        if options is None:
            with errors_of_django():
                checked = check_options(given, declared=True)
        else:
            checked = dict(options)
        object.__setattr__(self, "options", checked)
        super().__init__(**{**DEFAULTS, **own})
        declare = getattr(self.get_backend(), "declare", None)
        if options is None and declare is not None:
            declare(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | Duration | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> QueueTask:
        """Return the same task with other options. Raises Django's `InvalidTask`."""
        changes: dict[str, Any] = {
            "priority": priority,
            "queue_name": queue_name,
            "run_after": run_after,
            "backend": backend,
        }
        changes = {name: value for name, value in changes.items() if value is not None}
        if options:
            with errors_of_django():
                BaseDefinition(self.func, Options()).using(**options)
                checked = check_options(options, declared=False)
            changes["options"] = {**self.options, **checked}
        return replace(self, **changes)

    def callee(self) -> BaseDefinition[Any, Any]:
        """Return the definition that a step of a workflow runs. Raises Django's `InvalidTask`."""
        backend: Any = self.get_backend()
        if not hasattr(backend, "definition_of"):
            raise InvalidQueueTask(
                f"{self.module_path} belongs to the backend {self.backend!r}, which has no "
                "workflows. Use one of taskqueue: .using(backend=...)."
            )
        definition: BaseDefinition[Any, Any] = backend.definition_of(self)
        return definition

    def enqueue_many(self, calls: Iterable[Call]) -> Sequence[AnyResult]:
        """Write many tasks, all or none; return their results in the order of the calls.

        `calls` holds pairs of positional and keyword arguments.
        """
        backend: Any = self.get_backend()
        results: Sequence[AnyResult] = backend.enqueue_many(self, calls)
        return results

    async def aenqueue_many(self, calls: Iterable[Call]) -> Sequence[AnyResult]:
        """Async version of `enqueue_many`."""
        return await sync_to_async(self.enqueue_many, thread_sensitive=True)(calls)


def values_of(task: AnyTask) -> dict[str, Any]:
    """Return the fields of a task, by name."""
    return {field.name: getattr(task, field.name) for field in fields(task)}


def changed(task: AnyTask, **changes: Any) -> AnyTask:
    """Return a copy without validation; the task itself if nothing changes."""
    if all(getattr(task, name) == value for name, value in changes.items()):
        return task
    return make(type(task), {**values_of(task), **changes})
