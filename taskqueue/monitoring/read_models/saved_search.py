"""Saved searches: those of a user, and those that others have shared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from taskqueue.access.users import identity_of
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.searches import may_change
from taskqueue.models import SavedSearch
from taskqueue.monitoring.read_models.base import about, from_row
from taskqueue.monitoring.searching.search import shown_to


@dataclass(frozen=True, kw_only=True)
class ShownSearch:
    """A search that was saved under a name."""

    id: int
    name: str
    query: str = about("As the parameter `q` of `tasks/` takes it.")
    owner: str = about("The name of its owner when it was saved.")
    is_own: bool
    is_shared: bool = about("Whether all who may view tasks see it.")
    may_change: bool = about("Whether you may change and delete it.")
    created_at: datetime
    changed_at: datetime


def search_rows(user: Any) -> QuerySet[SavedSearch]:
    """Return the user's own searches, and those that are shared."""
    rows = SavedSearch.objects.using(database_alias())
    return rows.filter(Q(is_shared=True) | Q(owner=identity_of(user) or ""))


def shown_searches(rows: Iterable[SavedSearch], user: Any) -> list[ShownSearch]:
    """Make the read models of the rows.

    A search of another user is left out if it contains values that this user may not view, such as
    arguments.
    """
    owner = identity_of(user)
    return [
        from_row(
            ShownSearch,
            row,
            owner=row.owner_name,
            is_own=row.owner == owner,
            may_change=may_change(row, user),
        )
        for row in rows
        if row.owner == owner or shown_to(user, row.query) == row.query
    ]
