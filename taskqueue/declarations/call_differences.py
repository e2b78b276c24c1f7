"""The differences between two calls of a definition, without the values of sensitive arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from taskqueue.declarations.definition import BaseDefinition
from taskqueue.declarations.redaction import REDACTED, redacted_for

MOST, LONGEST = 50, 200


class Call(NamedTuple):
    """Positional and keyword arguments."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]


class Difference(NamedTuple):
    """A value that was changed, added or taken away, as JSON; empty: there was none."""

    path: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.path}: {self.before or 'none'} to {self.now or 'none'}"


def differences_of(
    before: Call, now: Call, *, definition: BaseDefinition[Any, Any] | None
) -> list[Difference]:
    """Return how two calls differ, argument by argument, whether given by position or by name.

    A definition tells the names of arguments, and which ones are sensitive: of these, it is told
    that they differ. Without one everything is shown: ask first whether it may be.
    """
    shown = [_shown(call, definition) for call in (before, now)]
    named = [_by_name(call, definition) for call in (before, now)]
    secret = {
        name
        for name in named[0].keys() | named[1].keys()
        if any(call.get(name) == REDACTED for call in shown)
    }
    return list(islice(_differences(*named, secret=secret), MOST))


def value_differences(path: str, before: Any, now: Any) -> list[Difference]:
    """Return how two JSON values differ, by the path of each item."""
    return list(islice(_differences({path: before}, {path: now}, secret=set()), MOST))


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], *, secret: set[str]
) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *now]):
        if name in secret:
            marks = [REDACTED if name in call else "" for call in (before, now)]
            if name not in before or name not in now or before[name] != now[name]:
                yield Difference(name, *marks)
            continue
        old, new = (
            dict(_inside(name, call[name])) if name in call else {} for call in (before, now)
        )
        for path in dict.fromkeys([*old, *new]):
            if old.get(path) != new.get(path) and not _is_filled(path, old, new):
                yield Difference(path, cut(old.get(path, "")), cut(new.get(path, "")))


def _is_filled(path: str, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Return whether it is an empty object or list on one side, whose items the other side has."""
    return any(
        one.get(path) in ("{}", "[]") and any(each.startswith(f"{path}.") for each in other)
        for one, other in ((old, new), (new, old))
    )


def _by_name(call: Call, definition: BaseDefinition[Any, Any] | None) -> dict[str, Any]:
    """Return the value of each argument by its name; those that `*args` takes by their place."""
    names: list[str | None] = [None] * len(call.args)
    rest = None
    if definition is not None:
        names = definition.signature.positional_names(len(call.args))
        parameters = definition.signature.parameters
        rest = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)
    found = {
        str(place) if name in (None, rest) else str(name): value
        for place, (name, value) in enumerate(zip(names, call.args, strict=True))
    }
    return {**found, **call.kwargs}


def _shown(call: Call, definition: BaseDefinition[Any, Any] | None) -> dict[str, Any]:
    if definition is None:
        return {}
    shown = redacted_for(definition, [None] * len(call.args), dict.fromkeys(call.kwargs))
    return _by_name(Call(*shown), definition)


def _inside(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield each value that is neither an object nor a list with items, by its path."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _inside(f"{path}.{key}", item)
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from _inside(f"{path}.{place}", item)
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def cut(text: str) -> str:
    """Return the text, of a length that a cell of a table shows."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
