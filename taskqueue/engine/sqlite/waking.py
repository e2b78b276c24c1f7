"""Wake workers on SQLite, where they poll: nothing has to be done."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper


def wake_sleeping(connection: BaseDatabaseWrapper, payload: str) -> None:
    """Do nothing: workers poll often."""
