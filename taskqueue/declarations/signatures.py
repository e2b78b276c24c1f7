"""Whether arguments fit a body, found without calling it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

from taskqueue.exceptions import ArgumentsDoNotBind


class _Hidden:
    """Stands for a default that nobody is shown."""

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
    ) -> None:
        signature = inspect.signature(body)
        parameters = list(signature.parameters.values())
        if takes_context:
            parameters = parameters[1:]
        self._signature = signature.replace(
            parameters=parameters, return_annotation=inspect.Signature.empty
        )
        self._sensitive = frozenset(sensitive)
        self.names = tuple(parameter.name for parameter in parameters)
        self.keywords_name = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
        """The parameter that takes all further keywords, if there is one."""
        simple = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        required = sum(p.default is p.empty for p in parameters)
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
            reason = str(error)
        # Not from within `except`: the frames of that error hold the arguments.
        raise ArgumentsDoNotBind(f"{name}{self} cannot be called so: {reason}.")

    def __str__(self) -> str:
        """As it is written, without the defaults of sensitive parameters."""
        shown = [
            parameter.replace(default=_Hidden())
            if parameter.name in self._sensitive and parameter.default is not parameter.empty
            else parameter
            for parameter in self._signature.parameters.values()
        ]
        return str(self._signature.replace(parameters=shown))

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """What each parameter is given, with defaults; None where the arguments do not fit."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        return dict(bound.arguments)

    def positional_names(self, count: int) -> list[str | None]:
        """The parameters that so many positional arguments fill; None for one too many."""
        parameters = self._signature.parameters.values()
        names: list[str | None] = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        return [*names, *[rest] * (count - len(names))][:count]

    def keyword_name(self, key: str) -> str | None:
        """The parameter that a keyword argument fills; None if there is none."""
        parameters = self._signature.parameters.values()
        by_keyword = {
            p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        }
        if key in by_keyword:
            return key
        return self.keywords_name
