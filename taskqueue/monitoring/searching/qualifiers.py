"""Qualifiers of the search, as fields of a `TaskFilter`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from taskqueue.core.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from taskqueue.core.states import TaskStatus
from taskqueue.core.suggestions import nearest
from taskqueue.engine.control.at_path import split_path
from taskqueue.engine.control.conditions import Described
from taskqueue.engine.control.filters import FILTERS, MOMENT, NUMBER, PATHS
from taskqueue.monitoring.searching.moments import moment
from taskqueue.monitoring.searching.search_tokens import SearchError, Term, Value

_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PRIORITY = re.compile(r"(?P<sign>[<>]=?)?(?P<from>-?\d{1,4})?(?P<dots>\.\.)?(?P<to>-?\d{1,4})?")
_CLASS_PATH = re.compile(r"(?:[^\W\d]\w*\.)+[A-Z]\w*")

Fields = dict[str, Any]
Reader = Callable[[Sequence[Value]], Fields]
# By the word before the colon: the field of the filter, and its description.
QUALIFIERS: dict[str, tuple[str, Described]] = {
    filter.qualifier: (field, filter) for field, filter in FILTERS.items() if filter.qualifier
}


def is_id(text: str) -> bool:
    """Whether the text has the form of a task id."""
    return _ID.fullmatch(text) is not None


def fields_of(term: Term, now: datetime) -> Fields:
    """Return the fields of a filter that the term sets. Raises SearchError."""
    name = f"{term.key}:"
    if term.key not in QUALIFIERS:
        hint = _hint(_("Did you mean “%(near)s:”?"), term.key, QUALIFIERS, mark=":")
        raise SearchError(
            _(
                "There is no qualifier “%(key)s:”. %(hint)s To search for the text itself, put it"
                " in quotation marks."
            ),
            key=term.key,
            hint=hint,
        )
    field, filter = QUALIFIERS[term.key]
    takes_path = filter.kind is PATHS
    if takes_path and not term.path:
        example = f"{term.key}.user.id:42"
        raise SearchError(
            _("“%(name)s” requires a path, as in “%(example)s”."), name=name, example=example
        )
    if term.path and not takes_path:
        raise SearchError(
            _("“%(name)s” takes no path: use “%(name)s%(value)s”."), name=name, value=term.values[0]
        )
    if filter.kind in (NUMBER, MOMENT) and len(term.values) > 1:
        raise SearchError(_("“%(name)s” takes one value."), name=name)
    if term.key in READERS:
        return READERS[term.key](term.values)
    if filter.kind is MOMENT:
        return {field: _moment(term.values[0].text, now)}
    texts = tuple(value.text for value in term.values)
    return {field: {_path(term): texts} if takes_path else texts}


def _path(term: Term) -> str:
    try:
        split_path(term.path)
    except ValueError:
        raise SearchError(
            _("“%(path)s” is not a path: separate names by dots, as in “user.id”."), path=term.path
        ) from None
    return term.path


def _hint(question: str, word: str, known: Collection[str], *, mark: str = "") -> str:
    """Return the question whether the closest known word is meant, or else all known words."""
    if near := nearest(word, known):
        return question % {"near": near}
    return _("Known: %(known)s.") % {"known": ", ".join(f"{name}{mark}" for name in known)}


def _ids(values: Sequence[Value]) -> Fields:
    for value in values:
        if not is_id(value.text):
            raise SearchError(
                _(
                    "“%(text)s” is not an id: an id has 32 hexadecimal digits; a part of it matches"
                    " nothing."
                ),
                text=value.text,
            )
    return {"ids": tuple(UUID(value.text) for value in values)}


def _names(values: Sequence[Value]) -> Fields:
    """Read names, and prefixes with a star at the end."""
    prefixes = tuple(v.text[:-1] for v in values if v.text.endswith("*") and not v.is_quoted)
    names = tuple(v.text for v in values if not v.text.endswith("*") or v.is_quoted)
    if "" in prefixes or any("*" in prefix for prefix in prefixes):
        raise SearchError(_("“*” is allowed only at the end of a prefix, as in “shop.*”."))
    return {key: value for key, value in (("name", names), ("name_prefix", prefixes)) if value}


def _statuses(values: Sequence[Value]) -> Fields:
    known = [status.value for status in TaskStatus]
    statuses = tuple(value.text.lower() for value in values)
    for status in statuses:
        if status not in known:
            unknown = _("There is no status “%(status)s”.") % {"status": status}
            hint = _hint(_("Did you mean “%(near)s”?"), status, known)
            raise SearchError(f"{unknown} {hint}")
    return {"statuses": statuses}


def _errors(values: Sequence[Value]) -> Fields:
    """Read error classes.

    Values in quotation marks are parts of messages, unless they are class paths.
    """
    classes = tuple(v.text for v in values if not v.is_quoted or _CLASS_PATH.fullmatch(v.text))
    parts = tuple(value.text for value in values if value.text not in classes)
    if "" in parts:
        raise SearchError(_("The quotation marks after “error:” are empty."))
    if classes and parts:
        raise SearchError(
            _(
                "Use “error:” with classes or with parts of messages in quotation marks, not with "
                "both."
            )
        )
    return {"error_class": classes} if classes else {"error_text": parts}


def _priorities(values: Sequence[Value]) -> Fields:
    """`5`, `>5`, `<=0`, `1..10`."""
    found = _PRIORITY.fullmatch(values[0].text)
    bounds = _bounds(found) if found else None
    if bounds is None:
        raise SearchError(
            _("“%(text)s” is not a priority: use 5, >5, <=0 or 1..10."), text=values[0].text
        )
    lowest, highest = bounds
    if lowest > HIGHEST_PRIORITY or highest < LOWEST_PRIORITY:
        raise SearchError(
            _("Priorities range from %(lowest)s to %(highest)s."),
            lowest=LOWEST_PRIORITY,
            highest=HIGHEST_PRIORITY,
        )
    return {
        "lowest_priority": max(lowest, LOWEST_PRIORITY),
        "highest_priority": min(highest, HIGHEST_PRIORITY),
    }


def _bounds(found: re.Match[str]) -> tuple[int, int] | None:
    sign, first, dots, last = found.group("sign", "from", "dots", "to")
    if sign and first is not None and not dots and last is None:
        number = int(first)
        if sign.startswith(">"):
            return number + (sign == ">"), HIGHEST_PRIORITY
        return LOWEST_PRIORITY, number - (sign == "<")
    if sign or (first is None and last is None) or (not dots and last is not None):
        return None
    lowest = LOWEST_PRIORITY if first is None else int(first)
    return lowest, (HIGHEST_PRIORITY if last is None else int(last)) if dots else lowest


def _moment(text: str, now: datetime) -> datetime:
    try:
        return moment(text, now=now)
    except ValueError:
        raise SearchError(
            _("“%(text)s” is not a time: use 2h, 7d, 14:30, 2026-11-01 or 2026-11-01T14:30."),
            text=text,
        ) from None


# For qualifiers that take more than plain values of one filter.
READERS: dict[str, Reader] = {
    "id": _ids,
    "name": _names,
    "status": _statuses,
    "error": _errors,
    "priority": _priorities,
}
