"""Searches that a user may make, and the text of a search as that user may see it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from taskqueue.access.permissions import VIEW_ARGUMENTS, VIEW_LEASES
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.control import TaskFilter
from taskqueue.monitoring.searching.search_tokens import SearchError, Value, split

NEEDED_TO_SEE = {"args": VIEW_ARGUMENTS, "worker": VIEW_LEASES}
"""By a qualifier, the permission to see the values that others search by."""


class SearchNotAllowed(SearchError):
    """The search would tell the user what they lack the permission to view."""


def permitted_search(which: TaskFilter, user: Any) -> TaskFilter:
    """Return the filter as this user may use it.

    Raises `SearchNotAllowed` for a filter by worker without the permission to view leases: its
    result tells who has run what. Only users who may view arguments search the arguments of
    definitions that this process does not know, because nothing says which of these are sensitive.
    """
    if which.worker and not user.has_perm(VIEW_LEASES):
        raise SearchNotAllowed(
            _("Searching by worker requires the permission %(permission)s.")
            % {"permission": VIEW_LEASES}
        )
    if which.arguments and user.has_perm(VIEW_ARGUMENTS):
        return replace(which, arguments_of_unknown=True)
    return which


def hidden_from(user: Any) -> frozenset[str]:
    """The qualifiers whose values this user may not see in the searches of others."""
    return frozenset(key for key, needed in NEEDED_TO_SEE.items() if not user.has_perm(needed))


def shown_to(user: Any, text: str) -> str:
    """The search as this user may see it."""
    return without(hidden_from(user), text)


def without(hidden: Collection[str], text: str) -> str:
    """The search with `[redacted]` for the values of these qualifiers; else as it was typed.

    What cannot be read as a search, and may hold such a value, is redacted as a whole.
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
