"""Counting calls that a debounce, throttle or capacity turns away, in the caller's transaction."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.models import CallCount
from taskqueue.models.call_count import TurnedAway


def count_turned_away(
    connection: BaseDatabaseWrapper, name: str, what: TurnedAway, number: int = 1
) -> None:
    """Count calls of a definition; a duty later adds the rows up."""
    if number:
        rows = CallCount._default_manager.using(connection.alias)
        rows.bulk_create([CallCount(name=name, what=what.value, number=number)])
