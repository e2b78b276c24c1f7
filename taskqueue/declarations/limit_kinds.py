"""The kinds of options that limit tasks: what they accept, and how JSON and text spell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.declarations.limits import (
    MOST_A_WINDOW,
    Concurrency,
    Cost,
    Rate,
    check_whole,
)
from taskqueue.declarations.names import check_tags
from taskqueue.declarations.option_kinds import Kind
from taskqueue.declarations.time_kinds import Seconds
from taskqueue.declarations.written import fields_in_text, from_fields
from taskqueue.exceptions import InvalidTask


@dataclass(frozen=True, repr=False, eq=False)
class LimitsKind(Kind):
    """One limit of a class, or several."""

    by: type[Concurrency] | type[Rate]
    example: str

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        if value is None:
            return ()
        limits = (value,) if isinstance(value, self.by) else value
        is_many = isinstance(limits, list | tuple)
        if not is_many or not all(isinstance(each, self.by) for each in limits):
            raise InvalidTask(_(
                "{name} must be such as {example}, or a list, not {value!r}.",
                name=name, example=self.example, value=value,
            ))  # fmt: skip
        return tuple(limits)

    def parse(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            value = fields_in_text(name, self.by, value, example=self.example)
        if isinstance(value, Mapping):
            value = [value]
        if not isinstance(value, list | tuple):
            return value
        return tuple(
            from_fields(name, self.by, each) if isinstance(each, Mapping) else each
            for each in value
        )


@dataclass(frozen=True, repr=False, eq=False)
class InstanceKind(Kind):
    """A value of a class; in JSON an object of its fields, such as `{"wait": 5}`.

    In text it is written as in Python.
    """

    by: type[Any]
    example: str

    def check(self, name: str, value: Any) -> object:
        if not isinstance(value, self.by):
            raise InvalidTask(_(
                "{name} must be such as {example}, not {value!r}.",
                name=name, example=self.example, value=value,
            ))  # fmt: skip
        return value

    def parse(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            found = fields_in_text(name, self.by, value, example=self.example)
            if len(found) != 1:
                raise InvalidTask(_(
                    "{name} must be one {type}, not {count}.",
                    name=name, type=self.by.__name__, count=len(found),
                ))  # fmt: skip
            [value] = found
        if not isinstance(value, Mapping):
            return value
        fields = {key: self.field(name, key, each) for key, each in value.items()}
        return from_fields(name, self.by, fields)

    def field(self, name: str, key: str, value: Any) -> Any:
        """Return a field's value as the class takes it. Raises `InvalidTask`."""
        return value


class AdmissionKind(InstanceKind):
    """An admission: `Debounce`, `Throttle` or `Capacity`. Lengths of time may be such as `5m`."""

    def field(self, name: str, key: str, value: Any) -> Any:
        return Seconds().parse(name, value) if key in ("wait", "max_wait") else value


class CostKind(Kind):
    """A whole number, or a callable that makes one."""

    def check(self, name: str, value: Any) -> Cost:
        if callable(value):
            made: Callable[..., int] = value
            return made
        return check_whole(name, value, most=MOST_A_WINDOW)

    def parse(self, name: str, value: Any) -> Any:
        return int(value) if isinstance(value, str) and value.isdecimal() else value


class TagsKind(Kind):
    """Words that a worker must have."""

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        return check_tags(name, value)

    def parse(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return [tag.strip() for tag in value.split(",") if tag.strip()]
