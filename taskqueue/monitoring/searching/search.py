"""A search: what was typed, as the filter that it means and as text again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from taskqueue.engine.control import TaskFilter
from taskqueue.monitoring.searching.qualifiers import QUALIFIERS, fields_of, is_id
from taskqueue.monitoring.searching.search_tokens import SearchError, Term, Value, split


@dataclass(frozen=True, kw_only=True)
class Search:
    """What tasks are searched by: every term fits."""

    terms: tuple[Term, ...]
    which: TaskFilter
    """Without arguments of definitions that are not known here."""
    now: datetime

    @property
    def text(self) -> str:
        """The search as it is typed; parsed again, it means the same."""
        return " ".join(map(str, self.terms))

    def values(self, key: str) -> tuple[str, ...]:
        """The values of a qualifier; none where it is not used."""
        return tuple(v.text for term in self.terms if term.key == key for v in term.values)

    def narrowed(self, key: str, *values: str) -> Search:
        """The search with these values of the qualifier in place of those that it has."""
        others = [term for term in self.terms if term.key != key]
        added = [Term(key, "", tuple(map(Value, values)))] if values else []
        return _searching([*others, *added], self.now)


def parse(text: str, *, now: datetime) -> Search:
    """What was typed into the box; `2h` is meant as before `now`. Raises SearchError."""
    return _searching(_merged(map(_typed, split(text))), now)


def written(**qualifiers: str) -> str:
    """The text of a search by these qualifiers, such as `name="shop.send", status="failed"`.

    Each value means itself, whatever characters it holds.
    """
    return " ".join(
        str(Term(key, "", (Value(text, is_quoted=key == "name" and text.endswith("*")),)))
        for key, text in qualifiers.items()
    )


def _typed(term: Term) -> Term:
    """An id needs no qualifier."""
    if not term.key and is_id(term.values[0].text) and not term.values[0].is_quoted:
        return Term("id", "", term.values)
    return term


def _merged(terms: Iterable[Term]) -> list[Term]:
    """The terms, with what is said twice of one property in the place of the first."""
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
        raise SearchError(_("Nothing stands between the quotation marks."))
    if words:
        fields["words"] = tuple(words)
    return Search(terms=tuple(terms), which=_filter(fields), now=now)


def _filter(fields: dict[str, Any]) -> TaskFilter:
    try:
        return TaskFilter(**fields) if fields else TaskFilter(everything=True)
    except ValueError as error:
        raise SearchError(str(error)) from None


__all__ = ["QUALIFIERS", "Search", "parse", "written"]
