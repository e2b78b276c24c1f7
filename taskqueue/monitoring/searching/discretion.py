"""What a user may search by, and the text of a search as that user may see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from taskqueue.engine.control import TaskFilter
from taskqueue.monitoring.searching.terms import SearchError, Value, split
from taskqueue.permissions import VIEW_ARGUMENTS, VIEW_LEASES
from taskqueue.redaction import REDACTED

HIDDEN = "args"
"""The qualifier behind which values of arguments stand."""


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
