"""Definitions: functions with their options, and the registry that finds them by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, cast

from taskqueue.conf import get_settings
from taskqueue.declarations import snapshots
from taskqueue.declarations.arguments import check_names, make_key
from taskqueue.declarations.context import AttemptContext
from taskqueue.declarations.hooks import FINDERS
from taskqueue.declarations.limit_keys import check_key_names, key_of_call
from taskqueue.declarations.limit_plan import plan_of
from taskqueue.declarations.limits import Limits
from taskqueue.declarations.making_snapshots import dump
from taskqueue.declarations.options import Options, check_options
from taskqueue.declarations.payload import encode
from taskqueue.declarations.placement import Placement, place
from taskqueue.declarations.registry import BaseRegistry
from taskqueue.declarations.signature import Signature
from taskqueue.declarations.together import check_together, require_unique_key
from taskqueue.exceptions import InvalidTask, UnknownTask

if TYPE_CHECKING:
    from taskqueue.conf import Settings
    from taskqueue.core.outcomes import Outcome

P = ParamSpec("P")
R = TypeVar("R")


class BaseDefinition(Generic[P, R]):
    """A function with its options, for the engine, the worker and the faces. Immutable."""

    # The names of the options that were passed to `.using()`.
    given: frozenset[str] = frozenset()
    # Whether annotations determine the accepted arguments and the body's values.
    has_typed_arguments = True

    def __init__(self, body: Callable[P, R], options: Options) -> None:
        self.body = body
        self.options = options
        self.name = options.name or f"{body.__module__}.{body.__qualname__}"
        self.is_async = inspect.iscoroutinefunction(body)
        # Values that its enqueues share, under the settings for which they were made.
        self.spec: tuple[Settings, Any] | None = None
        update_wrapper(cast(Any, self), body, updated=())

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    @cached_property
    def signature(self) -> Signature:
        """Return the parameters that an enqueue fills."""
        options = self.options
        return Signature(
            self.body,
            takes_context=options.takes_context,
            sensitive=options.sensitive,
            is_typed=self.has_typed_arguments,
        )

    @cached_property
    def snapshot(self) -> str:
        """Return the options that the worker needs, as JSON text, to be stored with each task."""
        return dump(self.options)

    @cached_property
    def limits(self) -> Limits | None:
        """Return the limits of its tasks, or None."""
        limits = self.options.limits
        return limits if limits.has_any else None

    @property
    def unique_scope(self) -> str:
        """Return the scope within which its unique keys are unique."""
        return self.options.unique_scope or self.name

    def context_for(self, context: AttemptContext) -> Any:
        """Return the first argument of a body that takes its context."""
        return context

    def announce_start(self, context: AttemptContext) -> None:
        """Announce the start, in the worker's child before the body. Must not raise."""

    def announce_end(
        self, context: AttemptContext, outcome: Outcome, *, may_be_retried: bool
    ) -> None:
        """Announce the end, in the worker's child after the body. Must not raise.

        `may_be_retried`: the attempt failed, and another one follows.
        """

    def using(self, **options: Any) -> Self:
        """Return a copy of the definition with other options. Raises `InvalidTask`."""
        changes = check_options(options, declared=False)
        if "backoff" in changes and not snapshots.is_storable(changes["backoff"]):
            raise InvalidTask(
                "A callable backoff belongs to the definition: set it in @task(backoff=...)."
            )
        changed = replace(self.options, **changes)
        check_together(changed, name=self.name)
        if "unique_per" in changes:
            require_unique_key(changed, name=self.name)
        check_keys(self.name, changed, self.signature)
        used = type(self)(self.body, changed)
        used.given = self.given | frozenset(changes)
        return used

    def without_key(self) -> Self:
        """Return a copy of the definition for a task without a unique key."""
        nothing = dict.fromkeys(("unique_key", "debounce", "throttle", "capacity"))
        return self.using(**nothing) if self.options.has_key else self

    def stored(self, args: Any, kwargs: Any, *, checks: bool = True) -> tuple[Any, Any]:
        """Return arguments in the form in which JSON stores them. Raises `InvalidArguments`."""
        return self.signature.store(self.name, args, kwargs, checks=checks)

    def loaded(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the body's arguments for stored ones, or for those of a call.

        Raises `InvalidArguments`, and `DoesNotExist` of a model.
        """
        return self.signature.load(self.name, args, kwargs)

    def encode(self, args: Any, kwargs: Any) -> tuple[str, str, str | None]:
        """Return arguments and unique key as they are stored.

        Raises `ArgumentsDoNotBind`, `InvalidArguments` or `InvalidTask`.
        """
        settings, signature = get_settings(), self.signature
        limit = settings.MAX_ARGUMENTS
        plain_args, plain_kwargs = args, kwargs
        if kwargs or tuple(map(type, args)) not in signature.exact_calls:
            signature.check(self.name, args, kwargs)
            plain_args, plain_kwargs = self.stored(args, kwargs, checks=settings.CHECK_ARGUMENTS)
            if not kwargs:
                signature.learn(args)
        secret = signature.is_secret
        args_text, kwargs_text = "[]", "{}"
        if args:
            args_text = encode(list(plain_args), limit=limit, what="args", is_secret=secret)
        if kwargs:
            left = limit - len(args_text)
            kwargs_text = encode(dict(plain_kwargs), limit=left, what="kwargs", is_secret=secret)
        key = self.options.unique_key
        if key is not None and not isinstance(key, str):
            stored = args_text, kwargs_text
            args, kwargs = self.loaded(args, kwargs)
            key = make_key(key, self.signature, args, kwargs, stored=stored)
        elif key is None and self.options.admission is not None:
            key = self._admission_key(args, kwargs, stored=(args_text, kwargs_text))
        return args_text, kwargs_text, key

    @cached_property
    def limit_plan(self) -> str:
        """Return its limits as data; see `limit_plan`."""
        return plan_of(self.limits, self.signature)

    def place(self, args: Any, kwargs: Any, *, stored: tuple[str, str]) -> Placement | None:
        """Return the placement of a call with these arguments as JSON text; None without limits.

        Raises `InvalidTask`, and what a callable key, cost or weight raises.
        """
        if self.limits is None:
            return None
        args, kwargs = self.loaded(args, kwargs)
        return place(
            self.limits, self.signature, args, kwargs,
            name=self.name, queue_name=self.options.queue_name, stored=stored,
        )  # fmt: skip

    def _admission_key(self, args: Any, kwargs: Any, *, stored: tuple[str, str]) -> str | None:
        """Return the key under which a call is admitted; None: it becomes a task in any case."""
        own = self.options.admission
        if own is None:
            return None
        args, kwargs = self.loaded(args, kwargs)
        made = key_of_call(
            f"{own.option}=", own.key, self.signature, args, kwargs,
            stored=stored, sensitive=self.options.sensitive,
        )  # fmt: skip
        if made is None:
            return None
        return own.option if made.text is None else f"{own.option}:{made.text}"


class Registry(BaseRegistry[BaseDefinition[Any, Any]]):
    """All definitions of the project, by name; filled by importing each app's `tasks` module."""

    word, unknown = "task", UnknownTask

    def find(self, name: str) -> BaseDefinition[Any, Any] | None:
        """Return the definition of that name, or None."""
        if (known := super().find(name)) is not None:
            return known
        made = filter(None, (find(name) for find in FINDERS))
        if definition := next(made, None):
            self.register(definition)
        return self._definitions.get(name)


registry = Registry()


def check_keys(name: str, options: Options, signature: Signature) -> None:
    """Raise `InvalidTask` if a key names an argument that the task does not have."""
    check_names(name, options.unique_key, signature)
    if (own := options.admission) is not None:
        check_key_names(f"The key of {own.option}=", own.key, signature, name=name)
    for what, key in options.limits.keys:
        check_key_names(what, key, signature, name=name)
