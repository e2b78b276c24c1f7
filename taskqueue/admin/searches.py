"""Searches by whole keys, which an index answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

LONGEST_ID = len(str(2**63))


def by_task(rows: QuerySet[Any], term: str) -> QuerySet[Any]:
    """The rows of the task with that id; none where it is not an id."""
    if not term.strip():
        return rows
    try:
        return rows.filter(task_id=UUID(term.strip()))
    except ValueError:
        return rows.none()


def row_id(text: str) -> int | None:
    """The number of a row; None where no row can have it."""
    if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_ID):
        return None
    number = int(text)
    return number if number < 2**63 else None
