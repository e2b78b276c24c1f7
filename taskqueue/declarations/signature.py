"""The signature of a body: check arguments, store them, and convert them for the body."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from django.core.exceptions import ObjectDoesNotExist
from django.utils.translation import gettext_noop

from taskqueue.core.refusals import refusal
from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.annotations import NULL, hints_of, kind_of
from taskqueue.declarations.argument_kinds import Kind, Misfit
from taskqueue.declarations.compound_kinds import Either
from taskqueue.declarations.misfits import misfit, without_key
from taskqueue.exceptions import ArgumentsDoNotBind

# What `inspect.Signature.bind` says, for the translators.
UNBOUND = tuple(
    (re.compile(re.escape(text).replace(r"\{name!r\}", "'(.*)'")), text)
    for text in (
        gettext_noop("missing a required argument: {name!r}"),
        gettext_noop("missing a required keyword-only argument: {name!r}"),
        gettext_noop("got an unexpected keyword argument {name!r}"),
        gettext_noop("multiple values for argument {name!r}"),
        gettext_noop("too many positional arguments"),
    )
)

# There may be any number of types if an annotation admits anything.
MOST_REMEMBERED = 100
BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Hidden:
    """The placeholder that is shown for the default of a sensitive parameter."""

    def __repr__(self) -> str:
        return "[redacted]"


class Signature:
    """The parameters of a body, without its context."""

    def __init__(
        self,
        body: Callable[..., Any],
        *,
        takes_context: bool,
        sensitive: Collection[str] = (),
        is_typed: bool = True,
    ) -> None:
        signature = inspect.signature(body)
        parameters = list(signature.parameters.values())
        if takes_context:
            parameters = parameters[1:]
        self._signature = signature.replace(
            parameters=parameters, return_annotation=inspect.Signature.empty
        )
        self._body, self._is_typed = body, is_typed
        self._sensitive = frozenset(sensitive)
        self.parameters = tuple(parameters)
        self.names = tuple(parameter.name for parameter in parameters)
        # The parameter that takes all other keywords, if there is one.
        self.keywords_name = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
        simple = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        required = sum(p.default is p.empty for p in parameters)
        # The types of calls of positional arguments that need no further look.
        self.exact_calls: set[tuple[type, ...]] = set()
        # Binding costs ten times what a comparison of lengths does, and most calls are plain.
        self._positional = range(required, len(parameters) + 1) if simple else range(0)

    def check(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Raise `ArgumentsDoNotBind` if a call with these arguments would be a TypeError."""
        if not kwargs and len(args) in self._positional:
            return
        try:
            self._signature.bind(*args, **kwargs)
            return
        except TypeError as error:
            reason = _why_unbound(error)
        # Not from within `except`: the frames of that error hold the arguments.
        raise ArgumentsDoNotBind(_(
            "{name}{signature} cannot be called with these arguments: {reason}.",
            name=name, signature=self, reason=reason,
        ))  # fmt: skip

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """Return the kinds of the annotations by the parameters' names, as far as known."""
        hints = hints_of(self._body) if self._is_typed else {}
        found = {}
        for parameter in self.parameters:
            if (kind := kind_of(hints.get(parameter.name))) is not None:
                is_null = parameter.default is None and not kind.admits(None)
                found[parameter.name] = Either([kind, NULL]) if is_null else kind
        return found

    @cached_property
    def converting(self) -> dict[str, Kind]:
        """Return the kinds that convert stored values for the body."""
        return {name: kind for name, kind in self.kinds.items() if kind.converts}

    @cached_property
    def _exact(self) -> tuple[frozenset[type] | None, ...]:
        """The types that each place stores as they are; None: all."""
        kinds = [self.kinds.get(name) for name in self._names_by_place[0]]
        return tuple(None if kind is None else kind.exact for kind in kinds)

    def learn(self, args: Sequence[Any]) -> None:
        """Remember the types of positional arguments that bind, if they are stored as they are."""
        exact, types = self._exact, tuple(map(type, args))
        if len(types) > len(exact) or len(self.exact_calls) >= MOST_REMEMBERED:
            return
        if all(each is None or kind in each for kind, each in zip(types, exact, strict=False)):
            self.exact_calls.add(types)

    def store(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        checks: bool = True,
        first: int = 0,
        is_placed: bool = True,
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Return the arguments of a call in their stored form.

        Raises `InvalidArguments` for one that its annotation does not admit; without `checks` only
        where the annotation converts. So many arguments are to come `first`; unless it `is_placed`,
        that is a guess, and an error does not show what another place may hold as sensitive.
        """
        kinds = self.kinds if checks else self.converting
        if not kinds:
            return args, kwargs
        return self._changed(name, args, kwargs, kinds, "store", first=first, is_placed=is_placed)

    def load(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Return the body's arguments for stored ones.

        Raises `InvalidArguments`, and `DoesNotExist` of a model.
        """
        if not self.converting:
            return args, kwargs
        return self._changed(name, args, kwargs, self.converting, "load")

    def _changed(
        self,
        task: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        kinds: Mapping[str, Kind],
        way: Literal["store", "load"],
        *,
        first: int = 0,
        is_placed: bool = True,
    ) -> tuple[list[Any], dict[str, Any]]:
        def change(name: str | None, what: object, value: Any) -> Any:
            kind = None if name is None else kinds.get(name)
            if name is None or kind is None:
                return value
            try:
                return kind.store(value) if way == "store" else kind.load(value)
            except Misfit as error:
                others: Sequence[str | None] = ()
                if isinstance(what, int) and not is_placed:
                    others = self.positional_names(what + 2)[what:]
                is_secret = not self._sensitive.isdisjoint((name, what, *others))
                found: Exception = misfit(
                    error, task=task, name=name, what=what, is_secret=is_secret
                )
            except ObjectDoesNotExist as error:
                if self._sensitive.isdisjoint((name, what)):
                    raise
                found = without_key(error, task=task, name=name)
            # Not from within `except`: the frames of that error hold the argument.
            raise found

        names = self.positional_names(first + len(args))[first:]
        return (
            [
                change(name, place, value)
                for place, (name, value) in enumerate(zip(names, args, strict=True))
            ],
            {key: change(self.keyword_name(key), key, value) for key, value in kwargs.items()},
        )

    def __str__(self) -> str:
        """Return the signature as it is written, without the defaults of sensitive parameters."""
        shown = [
            parameter.replace(default=_Hidden())
            if parameter.name in self._sensitive and parameter.default is not parameter.empty
            else parameter
            for parameter in self._signature.parameters.values()
        ]
        return str(self._signature.replace(parameters=shown))

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Return the value of each parameter, with defaults; None if the arguments do not fit."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        return dict(bound.arguments)

    def positional_names(self, count: int) -> list[str | None]:
        """Return the parameters that this many positional arguments fill; None for one too many."""
        return list(map(self._positional_name, range(count)))

    def _positional_name(self, place: int) -> str | None:
        names, rest = self._names_by_place
        return names[place] if place < len(names) else rest

    @cached_property
    def _names_by_place(self) -> tuple[list[str], str | None]:
        """The parameters that positional arguments fill, and the one that takes the rest."""
        found = self.parameters
        by_place = [p.name for p in found if p.kind in BY_PLACE]
        return by_place, next((p.name for p in found if p.kind is p.VAR_POSITIONAL), None)

    def is_secret(self, place: object) -> bool:
        """Return whether what stands at an index, or under a keyword, is sensitive.

        So is what fits no parameter, if any argument is.
        """
        if not self._sensitive or not isinstance(place, int | str):
            return False
        find: Callable[[Any], str | None] = self._positional_name
        if isinstance(place, str):
            find = self.keyword_name
        name = find(place)
        return name is None or not self._sensitive.isdisjoint((name, place))

    def keyword_name(self, key: str) -> str | None:
        """Return the parameter that a keyword argument fills; None if there is none."""
        p = self._signature.parameters.get(key)
        has_name = p is not None and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        return key if has_name else self.keywords_name


def _why_unbound(error: TypeError) -> str:
    """Return why a call does not fit, as Python says it."""
    text = str(error)
    for pattern, template in UNBOUND:
        if found := pattern.fullmatch(text):
            return refusal(template, **({"name": found[1]} if pattern.groups else {}))
    return text
