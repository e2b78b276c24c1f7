"""One call of a definition, or many, with their arguments checked and encoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from taskqueue.conf import get_settings
from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.payload import IsSecret, text_of_plain
from taskqueue.declarations.signature import Signature
from taskqueue.declarations.workflows.bounds import MAX_CALLS
from taskqueue.declarations.workflows.checking import check_call_count
from taskqueue.declarations.workflows.graph import NO_KEYWORDS, Arguments, Graph
from taskqueue.declarations.workflows.references import Reference, encode_with_references
from taskqueue.exceptions import ArgumentsDoNotBind, InvalidArguments, InvalidWorkflow

# How many positional arguments a call has, and the names of the others.
Shape = tuple[int, tuple[str, ...]]
# A placeholder for the first argument if that is the previous step's result.
_BEFORE = object()


class BuildsGraph(ABC):
    """A child workflow as a canvas sees it: it has a name and parameters, and builds a graph."""

    name: str

    @property
    @abstractmethod
    def signature(self) -> Signature:
        """Return the parameters that a call fills."""

    @property
    @abstractmethod
    def has_key(self) -> bool:
        """Return whether it holds a unique key when it is enqueued alone."""

    @abstractmethod
    def compile(self, args: str, kwargs: str, *, depth: int) -> Graph:
        """Return the graph of a call with these arguments, which may contain references."""


Callee = BaseDefinition[Any, Any] | BuildsGraph
# For `isinstance`: to make the union took longer than to ask it.
CALLEES = (BaseDefinition, BuildsGraph)


@lru_cache(maxsize=1024)
def shape_of(count: int, names: tuple[str, ...]) -> Shape:
    """Return a shape, one object for all calls that are alike: there may be very many of them."""
    return count, names


def require_callee(value: object) -> Callee:
    """Return a definition or workflow for a step. Raises `InvalidWorkflow` for anything else."""
    if not isinstance(value, CALLEES):
        raise InvalidWorkflow(
            f"A step runs a function under @task or @workflow, not one of type "
            f"{type(value).__name__}."
        )
    if isinstance(value, BaseDefinition) and value.options.id is not None:
        raise InvalidWorkflow(f"{value.name}: a step of a workflow takes no id= of its own.")
    return value


def text_of_known(callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Return the positional arguments as they are stored, where a look or two tells; else None.

    That is where plain arguments of the same types were found to need no change.
    """
    if not _is_known(callee, args, kwargs):
        return None
    text = text_of_plain(args)
    # Plain items hold no reference.
    return text if text is not None and len(text) <= get_settings().MAX_ARGUMENTS else None


def encode(
    callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any], *, is_immutable: bool
) -> tuple[Arguments, list[Reference]]:
    """Return the arguments of a call as they are stored, and the references in them.

    Raises `InvalidArguments`.
    """
    limit = get_settings().MAX_ARGUMENTS
    args, kwargs = _stored(callee, args, kwargs, is_immutable=is_immutable)
    secret = _secret_of(callee, is_immutable=is_immutable)
    args_text, kwargs_text = "[]", NO_KEYWORDS
    found: list[Reference] = []
    if args:
        args_text, references = encode_with_references(
            list(args), limit=limit, what="args", is_secret=secret
        )
        found += references
    if kwargs:
        kwargs_text, references = encode_with_references(
            dict(kwargs), limit=limit - len(args_text), what="kwargs", is_secret=secret
        )
        found += references
    return (args_text, kwargs_text), found


def _secret_of(callee: Callee, *, is_immutable: bool) -> IsSecret:
    """Return what is sensitive, whether or not the result of the step before comes first."""

    def is_secret(place: object) -> bool:
        places = (place, place + 1) if isinstance(place, int) and not is_immutable else (place,)
        return any(map(callee.signature.is_secret, places))

    return is_secret


def _stored(
    callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any], *, is_immutable: bool
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments in the form of JSON, whichever of the places of a workflow they fit."""
    checks, signature = get_settings().CHECK_ARGUMENTS, callee.signature
    if _is_known(callee, args, kwargs):
        return args, kwargs
    # Whether the result of the step before comes first is known once the workflow is built.
    either = not is_immutable and _trouble(callee, (_BEFORE, *args), kwargs) is None
    try:
        stored = signature.store(callee.name, args, kwargs, checks=checks, is_placed=not either)
        if not kwargs and _trouble(callee, args, kwargs) is None:
            signature.learn(args)
        return stored
    except InvalidArguments as error:
        if not either:
            raise
        found = error.with_traceback(None)
    try:
        return signature.store(callee.name, args, kwargs, checks=checks, first=1, is_placed=False)
    except InvalidArguments:
        if _trouble(callee, args, kwargs) is not None:
            raise
    raise found


def with_first(first: str, args: str) -> str:
    """Return positional arguments with another one before them; `first` may be empty."""
    if not first:
        return args
    return f"[{first}]" if args == "[]" else f"[{first},{args[1:]}"


def check_call(
    callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any], *, is_immutable: bool
) -> None:
    """Raise `ArgumentsDoNotBind` if the arguments cannot fit anywhere in a workflow."""
    if _is_known(callee, args, kwargs):
        return
    error = _trouble(callee, args, kwargs)
    if error is None or (not is_immutable and not _trouble(callee, (_BEFORE, *args), kwargs)):
        return
    raise error


def _is_known(callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call of the same types has been found to need no change."""
    return not kwargs and tuple(map(type, args)) in callee.signature.exact_calls


def check_step(step: str, callee: Callee, shapes: Iterable[Shape], *, first: bool) -> None:
    """Raise `InvalidWorkflow` if the callee cannot be a step, or not with these arguments."""
    if isinstance(callee, BuildsGraph):
        has_key = callee.has_key
    else:
        has_key = callee.options.unique_key is not None
        if (own := callee.options.admission) is not None:
            raise InvalidWorkflow(
                f"Step {step!r}: {callee.name} has {own.option}=, which may keep a call from "
                "becoming a task, but each call of a workflow must become one. Use "
                f"{callee.name.rpartition('.')[2]}.using({own.option}=None) for the step."
            )
    if has_key:
        raise InvalidWorkflow(
            f"Step {step!r}: {callee.name} has a unique_key, which only the outermost workflow can "
            f"hold. Use {callee.name.rpartition('.')[2]}.using(unique_key=None) for the step."
        )
    check_shapes(step, callee, shapes, first=first)


def check_shapes(step: str, callee: Callee, shapes: Iterable[Shape], *, first: bool) -> None:
    """Raise `InvalidWorkflow` if calls do not bind in their place, after a result or not."""
    for count, names in shapes:
        kwargs = dict.fromkeys(names)
        error = _trouble(callee, (_BEFORE,) * (count + first), kwargs)
        if error is None:
            continue
        remedy = ""
        if _trouble(callee, (_BEFORE,) * count, kwargs) is None:
            remedy = " The result of the step before comes first; use .si(...) to leave it out."
        raise InvalidWorkflow(f"Step {step!r}: {error}{remedy}")


def _trouble(
    callee: Callee, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ArgumentsDoNotBind | None:
    try:
        callee.signature.check(callee.name, args, dict(kwargs))
    except ArgumentsDoNotBind as error:
        return error.with_traceback(None)
    return None


class Calls:
    """The calls of a map: the arguments of each, their shapes, and the references in them."""

    def __init__(self, callee: BaseDefinition[Any, Any], *, is_immutable: bool = False) -> None:
        self.callee = callee
        # Whether no result of a step before can come first.
        self.is_immutable = is_immutable
        self.arguments: list[Arguments] = []
        self.shapes: set[Shape] = set()
        self.references: list[Reference] = []

    def add(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Add a call. Raises `ArgumentsDoNotBind`, `InvalidArguments` or `InvalidWorkflow`."""
        shape = shape_of(len(args), tuple(kwargs))
        if (known := text_of_known(self.callee, args, kwargs)) is not None:
            self.shapes.add(shape)
            self.arguments.append((known, NO_KEYWORDS))
            return
        if shape not in self.shapes:  # Most calls have the same: only one of them is tried.
            check_call(self.callee, args, kwargs, is_immutable=self.is_immutable)
            self.shapes.add(shape)
        arguments, references = encode(self.callee, args, kwargs, is_immutable=self.is_immutable)
        self.arguments.append(arguments)
        self.references += references


def bounded(items: Iterable[Any], name: str) -> list[Any]:
    """Return the items of a map as a list. Raises `InvalidWorkflow` for too many."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InvalidWorkflow(
            f"{name}: a map needs a list of items, not one of type {type(items).__name__}."
        )
    listed = list(islice(items, MAX_CALLS + 1))
    check_call_count(len(listed), name)
    return listed
