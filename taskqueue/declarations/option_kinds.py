"""The kinds of options: what each accepts, its normal form, and how JSON and text spell it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.core.retries import Backoff
from taskqueue.declarations.arguments import check_unique_key
from taskqueue.declarations.option_forms import (
    backoff_from_json,
    backoff_from_text,
    exception_class,
)
from taskqueue.declarations.payload import check_text, encode
from taskqueue.exceptions import InvalidTask

LARGEST_METADATA = 16 * 1024
LARGEST_COUNT = 2**31 - 1
LONGEST_WORKER_NAME = 150
MOST_WORKERS = 1000


class Kind:
    """The values that an option accepts, in addition to None if None is the default."""

    def check(self, name: str, value: Any) -> object:
        """Return the value in its normal form. Raises `InvalidTask`."""
        raise NotImplementedError

    def parse(self, name: str, value: Any) -> Any:
        """Convert a value from JSON or typed text for `check`. Raises `InvalidTask`.

        A value that needs no conversion is returned as it is.
        """
        return value


@dataclass(frozen=True, repr=False, eq=False)
class Checked(Kind):
    """The kind of a single option, with its own check function."""

    by: Callable[[str, Any], object]

    def check(self, name: str, value: Any) -> object:
        return self.by(name, value)


class Switch(Kind):
    """True or False."""

    def check(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise InvalidTask(_(
                "{name} must be True or False, not {value!r}.", name=name, value=value
            ))  # fmt: skip
        return value


@dataclass(frozen=True, repr=False, eq=False)
class Whole(Kind):
    """A whole number within bounds."""

    lowest: int = 1
    highest: int = LARGEST_COUNT

    def check(self, name: str, value: Any) -> int:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and self.lowest <= value <= self.highest:
            return int(value)
        text = _(
            "{name} must be a whole number between {lowest} and {highest}, not {value!r}.",
            name=name, lowest=self.lowest, highest=self.highest, value=value,
        )  # fmt: skip
        if self.highest == LARGEST_COUNT:
            text = _(
                "{name} must be a whole number of {lowest} or more, not {value!r}.",
                name=name, lowest=self.lowest, value=value,
            )  # fmt: skip
        raise InvalidTask(text)


@dataclass(frozen=True, repr=False, eq=False)
class Choice(Kind):
    """One of a few words."""

    words: tuple[str | None, ...]

    def check(self, name: str, value: Any) -> object:
        if value in self.words:
            return value
        words = _(
            "{names} or {last!r}", names=", ".join(map(repr, self.words[:-1])), last=self.words[-1]
        )
        raise InvalidTask(_(
            "{name} must be {words}, not {value!r}.", name=name, words=words, value=value
        ))  # fmt: skip


@dataclass(frozen=True, repr=False, eq=False)
class Name(Kind):
    """A short text of letters, digits and a few signs."""

    pattern: re.Pattern[str]
    longest: int

    def check(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or not self.pattern.fullmatch(value):
            raise InvalidTask(_(
                "{name} must be 1 to {longest} letters, digits, '_', '-', '.' or ':', not "
                "{value!r}.",
                name=name, longest=self.longest, value=value,
            ))  # fmt: skip
        return value


class UniqueKeyKind(Kind):
    """A text, names of arguments, True for all of them, or a callable."""

    def check(self, name: str, value: Any) -> object:
        if value is True or callable(value):
            return value
        if isinstance(value, str):
            return check_unique_key(value)
        if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
            raise InvalidTask(_(
                "{name} must be text, names of arguments, true for all of them, or in Python a "
                "callable, not {type}.",
                name=name, type=type(value).__name__,
            ))  # fmt: skip
        names = tuple(value)
        for item in names:
            if not isinstance(item, str) or not item:
                raise InvalidTask(_(
                    "{name} must be text or names of arguments, not {item!r}.",
                    name=name, item=item,
                ))  # fmt: skip
        if not names:
            raise InvalidTask(_("{name} must name an argument. Use None for no key.", name=name))
        return tuple(dict.fromkeys(names))


class Policy(Kind):
    """A backoff policy or, in Python, a callable."""

    def check(self, name: str, value: Any) -> object:
        if isinstance(value, Backoff) or (callable(value) and not isinstance(value, type)):
            return value
        raise InvalidTask(_(
            "{name} must be a policy such as Exponential(base=2, cap=600), or a callable "
            "(exception, task_result) -> duration, not {value!r}.",
            name=name, value=value,
        ))  # fmt: skip

    def parse(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return backoff_from_text(value)
        if isinstance(value, Mapping):
            return backoff_from_json(value)
        if value is None or isinstance(value, Backoff) or callable(value):
            return value
        raise InvalidTask(_(
            "{name} must be a policy, not {value!r}: write it as exponential(base=2, cap=600), in "
            'JSON also as {{"policy": "exponential", "base": 2, "cap": 600}}.',
            name=name, value=value,
        ))  # fmt: skip


class ExceptionClasses(Kind):
    """Exception classes; in JSON their paths, in text separated by commas."""

    def check(self, name: str, value: Any) -> tuple[type[BaseException], ...]:
        several = isinstance(value, Iterable) and not isinstance(value, type | str)
        classes = tuple(value) if several else (value,)
        for item in classes:
            if not (isinstance(item, type) and issubclass(item, BaseException)):
                raise InvalidTask(_(
                    "{name} must hold exception classes, not {item!r}.", name=name, item=item
                ))  # fmt: skip
        return classes

    def parse(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            value = [path.strip() for path in value.split(",") if path.strip()]
        if not isinstance(value, list | tuple):
            return value
        return tuple(
            exception_class(item, name) if isinstance(item, str) else item for item in value
        )


class WorkerNames(Kind):
    """Names of workers, each once."""

    def check(self, name: str, value: Any) -> tuple[str, ...]:
        several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        names = tuple(dict.fromkeys(value)) if several else (value,)
        if not 1 <= len(names) <= MOST_WORKERS:
            raise InvalidTask(_(
                "{name} must hold 1 to {most_workers} names, not {count}. Use None for any worker.",
                name=name, most_workers=MOST_WORKERS, count=len(names),
            ))  # fmt: skip
        for item in names:
            try:
                check_text(item, limit=LONGEST_WORKER_NAME, what=f"A name in {name}")
            except (TypeError, ValueError) as error:
                raise InvalidTask(why(error)) from None
            if not item:
                raise InvalidTask(_("A name in {name} must not be empty.", name=name))
        return names


class JsonObject(Kind):
    """A JSON object, as JSON stores it."""

    def check(self, name: str, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise InvalidTask(_(
                "{name} must be a JSON object (a dict), not {value!r}.", name=name, value=value
            ))  # fmt: skip
        normal: dict[str, Any] = json.loads(encode(value, limit=LARGEST_METADATA, what=name))
        return normal
