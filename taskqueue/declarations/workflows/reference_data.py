"""References as data: placeholders in stored arguments and conditions for later values.

    {"$step": "load", "path": ["rows", 0]}      a part of the result of a step
    {"$step": "load", "length": true}           the length of its result, None for null
    {"$step": "load", "lazy": true}             its result, a list that is read in pages
    {"$step": "load", "part": "error"}          its error, None if it did not fail
    {"$step": ["load", "clean"], "part": "error"}   the error of the first of them that failed
    {"$argument": 0}, {"$argument": "day"}      an argument of the workflow, by place or name
    {"$workflow": "result"}                     the return value, in callbacks; or its "error"

A key of the project's own data that begins with `$` is stored with one more, so that nothing
that a task is given can be taken for a reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from taskqueue.exceptions import InvalidWorkflow

Part = Literal["result", "error"]
Path = tuple[str | int, ...]
PARTS = ("result", "error")
STEP, ARGUMENT, WORKFLOW = "$step", "$argument", "$workflow"
ORIGINS = frozenset({STEP, ARGUMENT, WORKFLOW})
_DETAILS = frozenset({"part", "path", "length", "lazy"})
# Text that holds this may hold a reference, or a key that is stored with one more `$`.
MARK = '"$'


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a reference: steps, an argument, or the workflow; and which part of it."""

    steps: tuple[str, ...] = ()
    argument: int | str | None = None
    part: Part = "result"
    path: Path = ()
    is_length: bool = False
    is_lazy: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the data that stands for it."""
        data: dict[str, Any]
        if self.argument is not None:
            data = {ARGUMENT: self.argument}
        elif not self.steps:
            data = {WORKFLOW: self.part}
        else:
            data = {STEP: self.steps[0] if len(self.steps) == 1 else list(self.steps)}
            if self.part != "result":
                data["part"] = self.part
        if self.path:
            data["path"] = list(self.path)
        if self.is_length:
            data["length"] = True
        if self.is_lazy:
            data["lazy"] = True
        return data

    def __str__(self) -> str:
        """Return its name for messages."""
        if self.argument is not None:
            whole = f"the argument {self.argument!r}"
        elif not self.steps:
            whole = f"the {self.part} of the workflow"
        else:
            whole = f"the {self.part} of step {' or '.join(map(repr, self.steps))}"
        return whole + "".join(f"[{key!r}]" for key in self.path)


# Returns the value of the whole that a target names, without its path.
Read = Callable[[Target], Any]


def target_of(data: Mapping[str, Any]) -> Target | None:
    """Return the target of the data; None if it is not a reference.

    Raises `InvalidWorkflow` for a reference that is written wrongly.
    """
    origins = data.keys() & ORIGINS
    if not origins:
        return None
    (origin, *more) = sorted(origins)
    strange = data.keys() - _DETAILS - {origin}
    if more or strange:
        raise _mistake(f"has the key {min([*more, *strange])!r}")
    path, part = data.get("path", []), data.get("part", "result")
    if not isinstance(path, list) or not all(_is_place(key) for key in path):
        raise _mistake("needs a list of keys and indexes as its path")
    if part not in PARTS:
        raise _mistake(f"has the part {part!r}, not 'result' or 'error'")
    details: dict[str, Any] = {
        "path": tuple(path),
        "is_length": _flag(data, "length"),
        "is_lazy": _flag(data, "lazy"),
    }
    value = data[origin]
    if origin == STEP:
        return Target(steps=_steps(value), part=part, **details)
    if origin == ARGUMENT:
        if not _is_place(value):
            raise _mistake("needs the place or the name of an argument")
        return Target(argument=value, **details)
    if value not in PARTS:
        raise _mistake("needs 'result' or 'error' of the workflow")
    return Target(part=value, **details)


def _steps(value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) for name in names):
        raise _mistake("needs the name of a step")
    return tuple(names)


def _is_place(key: object) -> bool:
    return isinstance(key, str | int) and not isinstance(key, bool)


def _flag(data: Mapping[str, Any], name: str) -> bool:
    value = data.get(name, False)
    if not isinstance(value, bool):
        raise _mistake(f"needs true or false as {name}")
    return value


def _mistake(reason: str) -> InvalidWorkflow:
    return InvalidWorkflow(
        f"A reference {reason}. Write it as "
        '{"$step": "load", "path": ["rows"]}, the path only where a part is meant.'
    )


def substitute(data: Any, replacement: Read) -> Any:
    """Return the data with each reference replaced by `replacement`, and keys unescaped."""
    if isinstance(data, list):
        return [substitute(item, replacement) for item in data]
    if not isinstance(data, dict):
        return data
    target = target_of(data)
    if target is not None:
        return replacement(target)
    return {
        key[1:] if key.startswith("$$") else key: substitute(item, replacement)
        for key, item in data.items()
    }


def escaped(data: Any) -> Any:
    """Return plain data escaped, as it is stored among references."""
    if isinstance(data, Mapping):
        return {escaped_key(key): escaped(item) for key, item in data.items()}
    if isinstance(data, list | tuple):
        return [escaped(item) for item in data]
    return data


def escaped_key(key: Any) -> Any:
    """Return a key of plain data escaped, as it is stored among references."""
    return f"${key}" if isinstance(key, str) and key.startswith("$") else key


def targets_in(text: str) -> list[Target]:
    """Return the targets of the references in a JSON text."""
    found: list[Target] = []
    if MARK in text:
        substitute(json.loads(text), found.append)
    return found


def resolve(text: str, read: Read) -> Any:
    """Return the value of a JSON text, with each reference replaced by its target's value.

    Raises `InvalidWorkflow` where a value has no such part.
    """
    data = json.loads(text)
    return data if MARK not in text else substitute(data, lambda target: value_of(target, read))


def value_of(target: Target, read: Read) -> Any:
    """Return the part of a value that the target selects. Raises `InvalidWorkflow` without it."""
    value = select(read(target), target)
    if not target.is_length or value is None:
        return value
    if not isinstance(value, str | Sequence | Mapping):
        raise InvalidWorkflow(f"{target} has no length: it is {_kind(value)}.")
    return len(value)


def select(value: Any, target: Target) -> Any:
    """Return the part of a whole that the path names.

    A step without a result has no parts: all of them are None. Raises `InvalidWorkflow` where
    there is no such key or index.
    """
    if value is None:
        return None
    for key in target.path:
        try:
            is_object = isinstance(key, str) and isinstance(value, Mapping)
            if not is_object and (isinstance(key, str) or not _has_indexes(value)):
                raise TypeError
            value = value[key]
        except (TypeError, KeyError, IndexError):
            raise InvalidWorkflow(f"{target} does not exist: {key!r} is not in it.") from None
    return value


def _has_indexes(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "no list, object or text"
