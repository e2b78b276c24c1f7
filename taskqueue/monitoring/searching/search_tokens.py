"""Split the text of a search into words and qualifiers with their values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.translation import gettext as _

from taskqueue.declarations.payload import storable

LONGEST, MOST_TERMS, MOST_VALUES = 2000, 20, 100
_QUALIFIER = re.compile(r'([A-Za-z_][A-Za-z_0-9]*)(?:\.([^\s:"]+))?:')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE_VALUE = re.compile(r"[^\s,]+")
_BARE_WORD = re.compile(r"\S+")
_SPACE = re.compile(r"\s*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class SearchError(ValueError):
    """The text is not a valid search; the message says why, and what to do."""

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(message % values if values else message)


class Value(NamedTuple):
    """One value, and whether it was in quotation marks: then it is taken literally."""

    text: str
    is_quoted: bool = False

    def __str__(self) -> str:
        if not self.is_quoted and _BARE_VALUE.fullmatch(self.text) and self.text[0] != '"':
            return self.text
        return quoted(self.text)


@dataclass(frozen=True)
class Term:
    """A qualifier with values, one of which must match; or, without a key, a word."""

    key: str
    path: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        if not self.key:
            [word] = self.values
            is_plain = _BARE_WORD.fullmatch(word.text) and not _QUALIFIER.match(word.text)
            if is_plain and not word.is_quoted and word.text[0] != '"':
                return word.text
            return quoted(word.text)
        path = f".{self.path}" if self.path else ""
        return f"{self.key}{path}:{','.join(map(str, self.values))}"


def quoted(text: str) -> str:
    """Return the text as a literal value."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def search_text(**qualifiers: str) -> str:
    """Return a search by qualifiers, such as `status:failed name:shop.tasks.send`.

    Each value is taken literally, whatever characters it contains.
    """
    return " ".join(
        str(Term(key, "", (Value(text, is_quoted=key == "name" and text.endswith("*")),)))
        for key, text in qualifiers.items()
    )


def split(text: str) -> list[Term]:
    """Return the terms, in their order. Raises SearchError."""
    if len(text) > LONGEST:
        raise SearchError(
            _("A search may have at most %(limit)s characters; this one has %(length)s."),
            limit=LONGEST,
            length=len(text),
        )
    if storable(text, limit=len(text)) != text:
        raise SearchError(_("The search contains a character that no task can contain."))
    terms = []
    position = _skip(text, 0)
    while position < len(text):
        term, position = _term(text, position)
        terms.append(term)
        position = _skip(text, position)
    if len(terms) > MOST_TERMS:
        raise SearchError(
            _("A search may have at most %(limit)s terms; this one has %(count)s."),
            limit=MOST_TERMS,
            count=len(terms),
        )
    return terms


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _term(text: str, position: int) -> tuple[Term, int]:
    qualifier = _QUALIFIER.match(text, position)
    if qualifier is None:
        value, position = _value(text, position, _BARE_WORD)
        return Term("", "", (value,)), position
    key, path = qualifier[1].lower(), qualifier[2] or ""
    values, position = _values(text, qualifier.end(), f"{key}:")
    return Term(key, path, values), position


def _values(text: str, position: int, qualifier: str) -> tuple[tuple[Value, ...], int]:
    """Return the values after a qualifier, separated by commas."""
    values = []
    while position < len(text) and not text[position].isspace():
        if text[position] == ",":
            position += 1
            continue
        value, position = _value(text, position, _BARE_VALUE)
        values.append(value)
    if not values:
        raise SearchError(
            _("“%(qualifier)s” has no value. Put the value directly after it, without a space."),
            qualifier=qualifier,
        )
    if len(values) > MOST_VALUES:
        raise SearchError(
            _("“%(qualifier)s” takes at most %(limit)s values."),
            qualifier=qualifier,
            limit=MOST_VALUES,
        )
    return tuple(values), position


def _value(text: str, position: int, bare: re.Pattern[str]) -> tuple[Value, int]:
    if text[position] != '"':
        match = bare.match(text, position)
        assert match is not None  # The caller is at neither a space nor a comma.
        return Value(match[0]), match.end()
    match = _QUOTED.match(text, position)
    if match is None:
        raise SearchError(_("A quotation mark is not closed."))
    end = match.end()
    if end < len(text) and not text[end].isspace() and text[end] != ",":
        raise SearchError(_("Put a space after the closing quotation mark."))
    return Value(_ESCAPED.sub(r"\1", match[1]), is_quoted=True), end
