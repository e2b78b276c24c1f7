"""The parameters of a definition or workflow for forms, and the call that a filled form makes."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol, Union, get_args, get_origin

from taskqueue.declarations.annotations import hints_of, kind_of
from taskqueue.declarations.argument_kinds import Member, Text
from taskqueue.declarations.signature import Signature

EMPTY: Any = inspect.Parameter.empty
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class HasSensitive(Protocol):
    """The options of a definition or workflow that is called."""

    @property
    def sensitive(self) -> frozenset[str]:
        """Return the names of the arguments that are redacted."""


class HasParameters(Protocol):
    """A definition or a workflow."""

    @property
    def body(self) -> Callable[..., Any]:
        """Return the function."""

    @property
    def signature(self) -> Signature:
        """Return the parameters that a call fills."""

    @property
    def options(self) -> HasSensitive:
        """Return its options."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a body, as an enqueue fills it."""

    name: str
    # How a call fills it: one of the kinds of `inspect`.
    place: Any
    default: Any
    # The plain type of its annotation, or its choices; `object` for anything.
    kind: object
    is_nullable: bool
    is_sensitive: bool
    annotation: str

    @property
    def is_required(self) -> bool:
        """Return whether a call must fill it."""
        return self.default is EMPTY and self.place not in VARIABLE


def parameters(target: HasParameters) -> list[Parameter]:
    """Return the parameters of a body, and the sensitive names that only `**kwargs` takes."""
    found = inspect.signature(target.body).parameters
    hints = hints_of(target.body)
    sensitive = target.options.sensitive
    known = target.signature.names
    shown = [(found[name], hints.get(name, EMPTY)) for name in known]
    for name in sorted(sensitive - set(known)):
        hidden = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        shown.append((hidden, str | None))
    return [_parameter(each, hint, is_sensitive=each.name in sensitive) for each, hint in shown]


def _parameter(found: inspect.Parameter, hint: Any, *, is_sensitive: bool) -> Parameter:
    kind, is_nullable = _kind(hint)
    if found.kind is inspect.Parameter.VAR_POSITIONAL:
        kind = list
    elif found.kind is inspect.Parameter.VAR_KEYWORD:
        kind = dict
    elif hint is EMPTY and type(found.default) in (bool, int, float, str):
        kind = type(found.default)
    annotation = "" if found.annotation is EMPTY else found.annotation
    if not isinstance(annotation, str):
        annotation = inspect.formatannotation(annotation)
    return Parameter(
        name=found.name, place=found.kind, default=found.default, kind=kind,
        is_nullable=is_nullable, is_sensitive=is_sensitive, annotation=annotation,
    )  # fmt: skip


def _kind(hint: Any) -> tuple[object, bool]:
    """Return the plain type of an annotation or its choices, and whether it allows None."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        rest = [each for each in get_args(hint) if each is not type(None)]
        is_nullable = len(rest) < len(get_args(hint))
        return (_kind(rest[0])[0] if len(rest) == 1 else object), is_nullable
    if hint in (bool, int, float, str):
        return hint, False
    if isinstance(kind := kind_of(hint), Text):
        return str, False
    if origin is Literal:
        return _choices({str(each): each for each in get_args(hint)}), False
    if isinstance(kind, Member):
        return _choices({member.name: stored for member, stored in kind.stored.items()}), False
    plain = origin if isinstance(origin, type) else hint
    if isinstance(plain, type) and issubclass(plain, Mapping):
        return dict, False
    if isinstance(plain, type) and issubclass(plain, Sequence) and plain is not bytes:
        return list, False
    return object, False


def _choices(values: Mapping[str, Any]) -> object:
    """Return the values by their JSON text; `object` if one of them has none."""
    try:
        return tuple((json.dumps(value), label) for label, value in values.items())
    except (TypeError, ValueError):
        return object


def call_of(
    found: Sequence[Parameter], given: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments for values by the parameters' names.

    A parameter without a value is left out, unless a later one is given by position: then it is
    given its default. Raises ValueError, with its name, if JSON cannot hold that default.
    """
    rest = next((each for each in found if each.place is inspect.Parameter.VAR_POSITIONAL), None)
    is_by_place = rest is not None and rest.name in given
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    left_out: list[Parameter] = []
    for parameter in found:
        if parameter.place is inspect.Parameter.VAR_POSITIONAL:
            if is_by_place:
                args.extend(_defaults(left_out))
            args.extend(given.get(parameter.name, ()))
        elif parameter.place is inspect.Parameter.VAR_KEYWORD:
            kwargs.update(given.get(parameter.name, {}))
        elif goes_by_place(parameter.place, is_by_place):
            if parameter.name not in given:
                left_out.append(parameter)
                continue
            args.extend(_defaults(left_out))
            left_out = []
            args.append(given[parameter.name])
        elif parameter.name in given:
            kwargs[parameter.name] = given[parameter.name]
    return args, kwargs


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def values_of_call(
    found: Sequence[Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield the value of each parameter of a call; the rest as that of `*` or `**`, if there is."""
    names = [each.name for each in found if each.place in POSITIONAL]
    yield from zip(names, args, strict=False)
    known = {each.name for each in found if each.place not in VARIABLE}
    further = {key: value for key, value in kwargs.items() if key not in known}
    for parameter in found:
        if parameter.place is inspect.Parameter.VAR_POSITIONAL and args[len(names) :]:
            yield parameter.name, list(args[len(names) :])
        elif parameter.place is inspect.Parameter.VAR_KEYWORD and further:
            yield parameter.name, further
        elif parameter.name in kwargs and parameter.place not in VARIABLE:
            yield parameter.name, kwargs[parameter.name]


def call_like(
    kept: tuple[Sequence[Any], Mapping[str, Any]],
    found: Sequence[Parameter],
    given: Mapping[str, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """Return a call with these values, with positional arguments where another call has them.

    Raises ValueError as `call_of` does.
    """
    names = [each.name for each in found if each.place in POSITIONAL][: len(kept[0])]
    rest = [each.name for each in found if each.place is inspect.Parameter.VAR_POSITIONAL]
    if any(name not in given for name in names) or any(name in given for name in rest):
        return call_of(found, given)
    others = [each for each in found if each.name not in names]
    left = {name: value for name, value in given.items() if name not in names}
    args, kwargs = call_of(others, left)
    return [*(given[name] for name in names), *args], kwargs


def _defaults(left_out: Sequence[Parameter]) -> list[Any]:
    """Return the defaults as an enqueue stores them. Raises ValueError."""
    found = []
    for each in left_out:
        value = each.default.value if isinstance(each.default, Enum) else each.default
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError(each.name) from None
        found.append(value)
    return found


def goes_by_place(place: Any, is_before_rest: bool) -> bool:
    """Return whether a parameter has to be filled by its place: so has all before `*args`."""
    if place is inspect.Parameter.POSITIONAL_ONLY:
        return True
    return is_before_rest and place is inspect.Parameter.POSITIONAL_OR_KEYWORD
