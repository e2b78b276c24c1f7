"""The serializers of tasks, and the receipt of an enqueue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskqueue.api.serializing import serializer_for
from taskqueue.monitoring.read_models.attempt import ShownAttempt
from taskqueue.monitoring.read_models.base import about, from_row
from taskqueue.monitoring.read_models.task import STATUSES, ListedTask, ShownTask


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The answer to an enqueue.

    If a task of another type holds the unique key, a user without `view_task` sees only its id.
    """

    id: UUID
    name: str | None
    status: str | None = about(choices=STATUSES)
    created: bool = about("false: another task holds the unique key.")
    updated: bool = about("Whether the arguments of that task were replaced.")
    enqueued_at: datetime | None
    ready_at: datetime | None


TaskJSON = serializer_for(ShownTask)
ListedTaskJSON = serializer_for(ListedTask, optional=frozenset({"args", "kwargs"}))
AttemptJSON = serializer_for(ShownAttempt)
ReceiptJSON = serializer_for(Receipt)


def receipt(result: Any, *, is_visible: bool) -> Receipt:
    """The receipt of an enqueue; of a holder of the key that is hidden it has only the id."""
    hidden = {} if is_visible else dict.fromkeys(("name", "status", "enqueued_at", "ready_at"))
    return from_row(Receipt, result, **hidden)
