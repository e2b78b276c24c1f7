"""Check and normalise JSON values: arguments, results and metadata.

A value is normalised as Django does (tuples become lists, UTF-8 bytes text), and refused if JSON,
or a database that stores it, would change it in any other way.
"""

from __future__ import annotations

import json
import re
from collections import UserString
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from json.encoder import encode_basestring_ascii
from math import isnan
from types import NoneType
from typing import Any

from taskqueue.core.refusals import refusal as _
from taskqueue.exceptions import InvalidArguments, UnsupportedType

# The deepest nesting of lists and objects.
DEEPEST = 32
LARGEST_INTEGER = 2**63
_SURROGATE = re.compile("[\ud800-\udfff]")
# Whole floats from here on are written with an exponent, which jsonb turns into an integer.
_INEXACT_FLOAT = 1e15

_WORDS = {None: "null", False: "false", True: "true"}

# Whether the value at the first step of a path is sensitive; with None, the whole value.
IsSecret = Callable[[object], bool]

dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class _PlainFloats(json.JSONEncoder):
    """Writes whole floats without an exponent, so that jsonb returns floats."""

    def encode(self, o: Any) -> str:
        if isinstance(o, float):
            return f"{o:.1f}" if o.is_integer() else repr(o)
        if isinstance(o, dict):
            return "{" + ",".join(f"{dumps(k)}:{self.encode(v)}" for k, v in o.items()) + "}"
        if isinstance(o, list):
            return "[" + ",".join(map(self.encode, o)) + "]"
        return dumps(o)


def encode(value: Any, *, limit: int, what: str, is_secret: IsSecret | None = None) -> str:
    """Return the JSON text of a value, at most `limit` bytes long.

    Raises `InvalidArguments` or `UnsupportedType`, naming the place of the mistake. `what` is the
    name of the value in the message. Nothing within what `is_secret` is shown.
    """
    text = text_of_plain(value)
    if text is None:
        finder = _Normaliser(what, is_secret)
        normal = finder.normalise(value, 0)
        text = _PlainFloats().encode(normal) if finder.has_large_float else dumps(normal)
    if len(text) > limit:
        raise InvalidArguments(_(
            "{what} must be at most {limit:,} bytes as JSON, not {count:,}. Store large data "
            "elsewhere and pass a reference to it.",
            what=what, limit=limit, count=len(text),
        ), path=(what,))  # fmt: skip
    return text


def encode_many(
    values: Sequence[Sequence[Any]], *, limit: int, what: str, is_secret: IsSecret | None = None
) -> list[str]:
    """Return the JSON texts of many lists, as `encode` does; plain lists are encoded together.

    Raises what is wrong with the first one that is wrong.
    """
    texts: list[str] | None = None
    lengths = set(map(len, values))
    if lengths == {1}:
        column = _texts_of_column([item for (item,) in values])
        texts = column and [f"[{text}]" for text in column]
    elif len(lengths) == 1:
        size = lengths.pop()
        columns = [_texts_of_column([value[place] for value in values]) for place in range(size)]
        if columns and None not in columns:
            texts = [f"[{','.join(row)}]" for row in zip(*columns, strict=True)]
    if texts is None or max(map(len, texts)) > limit:
        return [
            encode(list(value), limit=limit, what=what, is_secret=is_secret) for value in values
        ]
    return texts


def _texts_of_column(items: list[Any]) -> list[str] | None:
    """Return the JSON texts of values of one plain type that JSON keeps as they are, or None."""
    kinds = set(map(type, items))
    if kinds == {int}:
        is_kept = min(items) >= -LARGEST_INTEGER and max(items) < LARGEST_INTEGER
        return list(map(repr, items)) if is_kept else None
    if kinds == {str}:
        joined = "".join(items)
        is_kept = joined.isascii() and "\x00" not in joined
        return list(map(encode_basestring_ascii, items)) if is_kept else None
    if kinds == {float}:
        is_kept = min(items) > -_INEXACT_FLOAT and max(items) < _INEXACT_FLOAT
        return list(map(repr, items)) if is_kept and not any(map(isnan, items)) else None
    return [_WORDS[item] for item in items] if kinds <= {bool, NoneType} else None


def text_of_plain(value: Any) -> str | None:
    """Return the JSON text of a list, tuple or dict of plain items, or None for anything else.

    Most arguments are such.
    """
    if type(value) is list or type(value) is tuple:
        items = list(map(_text_of_item, value))
        return None if None in items else f"[{','.join(items)}]"  # type: ignore[arg-type]
    if type(value) is dict and all(type(key) is str for key in value):
        pairs = [(_text_of_item(key), _text_of_item(item)) for key, item in value.items()]
        if all(None not in pair for pair in pairs):
            return f"{{{','.join([f'{key}:{item}' for key, item in pairs])}}}"
    return None


def _text_of_item(value: Any) -> str | None:
    """Return the JSON text of a value that JSON obviously represents unchanged, or None."""
    kind = type(value)
    if kind is int:
        return repr(value) if -LARGEST_INTEGER <= value < LARGEST_INTEGER else None
    if kind is str:
        return encode_basestring_ascii(value) if value.isascii() and "\x00" not in value else None
    return _WORDS[value] if value is None or kind is bool else None


class _Normaliser:
    """Walks a value once, and remembers the path to the current item."""

    def __init__(self, what: str, is_secret: IsSecret | None) -> None:
        self.what, self._is_secret = what, is_secret
        self.path: list[object] = []
        self.has_large_float = False

    def normalise(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return self._integer(int(value))
        if isinstance(value, float):
            return self._float(float(value))
        if isinstance(value, bytes):
            return self._text(self._decoded(value))
        if isinstance(value, UserString):
            # A sequence whose items are of its own kind would nest without end.
            raise self._unsupported(value, _("Pass it as text: str(value)."))
        if depth >= DEEPEST and isinstance(value, Mapping | Sequence):
            raise self._refused(_("nested deeper than {deepest} levels", deepest=DEEPEST))
        if isinstance(value, Mapping):
            return {self._key(k): self._inside(k, v, depth) for k, v in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytearray | memoryview | range):
            return [self._inside(place, item, depth) for place, item in enumerate(value)]
        raise self._unsupported(
            value,
            _(
                "JSON has text, numbers, true, false, null, lists and objects; pass the value as "
                "one of these."
            ),
        )

    def _decoded(self, octets: bytes) -> str:
        with suppress(UnicodeDecodeError):
            return octets.decode()
        # Not from within `except`: that error holds the value.
        raise self._refused(_("bytes that are not UTF-8 text"))

    def _inside(self, place: object, value: Any, depth: int) -> Any:
        self.path.append(place)
        normal = self.normalise(value, depth + 1)
        self.path.pop()
        return normal

    def _key(self, key: Any) -> str:
        if not isinstance(key, str):
            shown = _("sensitive, so not shown") if self._hides() else repr(key)
            raise UnsupportedType(_(
                "Unsupported type: {type} as a key ({key}) at {place}. Keys of JSON objects are "
                "text.",
                type=type(key), key=shown, place=self._place(),
            ), path=self._path())  # fmt: skip
        return self._text(str.__str__(key))

    def _text(self, text: str) -> str:
        if text.isascii():
            if "\x00" in text:
                raise self._refused(_("a NUL character, which PostgreSQL cannot store"))
        elif "\x00" in text or _SURROGATE.search(text):
            raise self._refused(_("a NUL character or a lone surrogate, which cannot be stored"))
        return text

    def _integer(self, number: int) -> int:
        if not -LARGEST_INTEGER <= number < LARGEST_INTEGER:
            raise self._refused(_("an integer beyond 64 bits; pass it as text"))
        return number

    def _float(self, number: float) -> float:
        if number - number != 0:  # NaN and the infinities
            shown = _("a number") if self._hides() else repr(number)
            raise self._refused(_("{number}, which JSON does not have", number=shown))
        if abs(number) >= _INEXACT_FLOAT:
            self.has_large_float = True
        return number

    def _unsupported(self, value: object, remedy: str) -> UnsupportedType:
        text = _(
            "Unsupported type: {type} at {place}. {remedy}",
            type=type(value), place=self._place(), remedy=remedy,
        )  # fmt: skip
        return UnsupportedType(text, path=self._path())

    def _refused(self, reason: str) -> InvalidArguments:
        return InvalidArguments(_(
            "{place} cannot be stored: {reason}.", place=self._place(), reason=reason
        ), path=self._path())  # fmt: skip

    def _path(self) -> tuple[object, ...]:
        return self.what, *self._shown_path()

    def _place(self) -> str:
        return self.what + "".join(f"[{place!r}]" for place in self._shown_path())

    def _shown_path(self) -> list[object]:
        """Return the path, of a sensitive argument no further than to it: keys may be secrets."""
        return self.path if (most := self._hidden_from()) is None else self.path[:most]

    def _hides(self) -> bool:
        return self._hidden_from() is not None

    def _hidden_from(self) -> int | None:
        """Return how many steps of the path may be shown, or None for all."""
        is_secret, steps = self._is_secret, (None, *self.path[:1])
        if is_secret is None:
            return None
        return next((shown for shown, step in enumerate(steps) if is_secret(step)), None)


def check_text(text: str, *, limit: int, what: str) -> str:
    """Return the text. Raises ValueError if no column of that many characters can store it."""
    if not isinstance(text, str):
        raise TypeError(_("{what} must be text, not {type}.", what=what, type=type(text).__name__))
    if len(text) > limit:
        raise ValueError(_(
            "{what} may have at most {limit} characters; this one has {count}.",
            what=what, limit=limit, count=len(text),
        ))  # fmt: skip
    if "\x00" in text or _SURROGATE.search(text):
        raise ValueError(_("{what} holds a NUL character or a lone surrogate.", what=what))
    return text


def storable(text: str, *, limit: int, marker: str = "… [cut]") -> str:
    """Return the text, shortened to the limit and storable in any database; never raises."""
    if len(text) > limit:
        text = text[: max(0, limit - len(marker))] + marker
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    return text.replace("\x00", "\ufffd")
