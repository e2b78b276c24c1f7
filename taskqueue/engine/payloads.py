"""What each task of an enqueue has of its own, and what an enqueue gives back."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from taskqueue.declarations.placement import Placement
from taskqueue.models.task import Route

OWN_COLUMNS = ("id", "args", "kwargs")
PLACEMENT_COLUMNS = ("partition", "limits")
KEY_COLUMNS = ("unique_key", "unique_scope", "unique_for", "unique_until", "holds_unique_key")
NO_KEY = dict.fromkeys(KEY_COLUMNS) | {
    "unique_scope": "", "unique_for": "", "unique_in": None, "holds_unique_key": False,
}  # fmt: skip
NOT_PLACED = dict.fromkeys(PLACEMENT_COLUMNS)


class Payload(NamedTuple):
    """One task's id, as 32 hexadecimal digits, its arguments, as JSON text, and its key.

    Of a task that is limited also its placement.
    """

    id: str
    args: str
    kwargs: str
    unique_key: str | None
    placement: Placement | None = None


class Enqueued(NamedTuple):
    """The result of one enqueue."""

    id: str
    status: str
    enqueued_at: datetime
    ready_at: datetime | None
    created: bool = True
    updated: bool = False
    # Of the definition, where a task holds the unique key: it may be another's.
    name: str | None = None


def payload_columns(payload: Payload) -> dict[str, Any]:
    """The columns that a payload decides."""
    id, args, kwargs, unique_key, placement = payload
    own = {"id": id, "args": args, "kwargs": kwargs, **placement_columns(placement)}
    if unique_key is None:
        return own | NO_KEY
    return own | {"unique_key": unique_key, "holds_unique_key": True}


def placement_columns(placement: Placement | None) -> dict[str, Any]:
    """The columns of a placement; of a task that is limited also its route."""
    if placement is None:
        return NOT_PLACED
    return {**placement._asdict(), "route": Route.PARTITION.value}
