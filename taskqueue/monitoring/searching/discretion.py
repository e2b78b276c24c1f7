"""A search as it may be shown: without values of arguments, for who may not view these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taskqueue.monitoring.searching.terms import SearchError, Value, split
from taskqueue.permissions import VIEW_ARGUMENTS
from taskqueue.redaction import REDACTED

HIDDEN = "args"
"""The qualifier behind which values of arguments stand."""


def shown_to(user: Any, text: str) -> str:
    """The search as this user may see it."""
    return text if user.has_perm(VIEW_ARGUMENTS) else without_arguments(text)


def without_arguments(text: str) -> str:
    """The search with `[redacted]` for the values of arguments; as it was typed if it has none.

    What cannot be read as a search, and may hold such a value, is redacted as a whole.
    """
    if f"{HIDDEN}." not in text.lower():
        return text
    try:
        terms = split(text)
    except SearchError:
        return REDACTED
    if all(term.key != HIDDEN for term in terms):
        return text
    return " ".join(
        str(replace(term, values=(Value(REDACTED),)) if term.key == HIDDEN else term)
        for term in terms
    )
