"""A search: converting its text to a filter, and a filter to text."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from taskqueue.access.permissions import VIEW_ARGUMENTS, VIEW_LEASES
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.monitoring.searching.qualifiers import fields_of, is_id
from taskqueue.monitoring.searching.search_tokens import SearchError, Term, Value, split


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for tasks that match every term."""

    terms: tuple[Term, ...]
    # Without arguments of definitions that are not known here.
    which: TaskFilter
    now: datetime

    @property
    def text(self) -> str:
        """Return the search as text, which parses to the same search."""
        return " ".join(map(str, self.terms))

    def values(self, key: str) -> tuple[str, ...]:
        """Return the values of a qualifier; none if it is not used."""
        return tuple(v.text for term in self.terms if term.key == key for v in term.values)

    def narrowed(self, key: str, *values: str) -> Search:
        """Return the search with these values of the qualifier instead of its own."""
        others = [term for term in self.terms if term.key != key]
        added = [Term(key, "", tuple(map(Value, values)))] if values else []
        return _searching([*others, *added], self.now)


def parse(text: str, *, now: datetime) -> Search:
    """Parse the text of the search box; `2h` is relative to `now`. Raises SearchError."""
    return _searching(_merged(map(_typed, split(text))), now)


def _typed(term: Term) -> Term:
    """Add the qualifier to an id."""
    if not term.key and is_id(term.values[0].text) and not term.values[0].is_quoted:
        return Term("id", "", term.values)
    return term


def _merged(terms: Iterable[Term]) -> list[Term]:
    """Merge the values of repeated qualifiers into the first one."""
    merged: dict[Any, Term] = {}
    for number, term in enumerate(terms):
        place = (term.key, term.path) if term.key else number
        before = merged.get(place)
        values = dict.fromkeys((*(before.values if before else ()), *term.values))
        merged[place] = Term(term.key, term.path, tuple(values))
    return list(merged.values())


def _searching(terms: list[Term], now: datetime) -> Search:
    fields: dict[str, Any] = {}
    words = []
    for term in terms:
        if not term.key:
            words.append(term.values[0].text)
            continue
        for name, value in fields_of(term, now).items():
            known = fields.get(name)
            fields[name] = {**known, **value} if isinstance(known, dict) else value
    if "" in words:
        raise SearchError(_("The quotation marks are empty."))
    if words:
        fields["words"] = tuple(words)
    return Search(terms=tuple(terms), which=_filter(fields), now=now)


def _filter(fields: dict[str, Any]) -> TaskFilter:
    try:
        return TaskFilter(**fields) if fields else TaskFilter(everything=True)
    except ValueError as error:
        raise SearchError(str(error)) from None


# By qualifier: the permission to see the values in searches of others.
NEEDED_TO_SEE = {"args": VIEW_ARGUMENTS, "worker": VIEW_LEASES}


class SearchNotAllowed(SearchError):
    """The search would show the user what they lack the permission to view."""


def permitted_search(which: TaskFilter, user: Any) -> TaskFilter:
    """Return the filter as this user may use it.

    Raises `SearchNotAllowed` for a filter by worker without the permission to view leases, because
    its result shows who has run what. Only users who may view arguments search the arguments of
    definitions that this process does not know, because nothing says which of these are sensitive.
    """
    if which.worker and not user.has_perm(VIEW_LEASES):
        raise SearchNotAllowed(
            _("Searching by worker requires the permission %(permission)s."), permission=VIEW_LEASES
        )
    if which.arguments and user.has_perm(VIEW_ARGUMENTS):
        return replace(which, arguments_of_unknown=True)
    return which


def hidden_from(user: Any) -> frozenset[str]:
    """Return the qualifiers whose values this user may not see in the searches of others."""
    return frozenset(key for key, needed in NEEDED_TO_SEE.items() if not user.has_perm(needed))


def shown_to(user: Any, text: str) -> str:
    """Return the search as this user may see it."""
    return without(hidden_from(user), text)


def without(hidden: Collection[str], text: str) -> str:
    """Return the search with `[redacted]` for the values of these qualifiers, else as it was typed.

    Text that cannot be parsed as a search, and may contain such a value, is redacted completely.
    """
    lowered = text.lower()
    if not any(f"{key}{mark}" in lowered for key in hidden for mark in ".:"):
        return text
    try:
        terms = split(text)
    except SearchError:
        return REDACTED
    if all(term.key not in hidden for term in terms):
        return text
    return " ".join(
        str(replace(term, values=(Value(REDACTED),)) if term.key in hidden else term)
        for term in terms
    )
