"""Searches by whole keys, which an index answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet


def by_task(rows: QuerySet[Any], term: str) -> QuerySet[Any]:
    """The rows of the task with that id; none where it is not an id."""
    if not term.strip():
        return rows
    try:
        return rows.filter(task_id=UUID(term.strip()))
    except ValueError:
        return rows.none()
