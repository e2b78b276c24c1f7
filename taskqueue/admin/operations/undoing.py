"""The seconds after a bulk action in which it can be undone, because nothing has been done yet."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.operations.asking import undoable
from taskqueue.engine.verbs import KNOWN_VERBS
from taskqueue.models import Operation
from taskqueue.monitoring.reading import now

# Seconds between the confirmation and the start.
UNDO_SECONDS = 10
MOST_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Undoable:
    """An operation that has not begun, with the seconds left to undo it."""

    id: UUID
    label: str
    expected: int | None
    seconds: int


def may_act_on_many(user: Any) -> bool:
    """Return whether the user may have requested an operation."""
    return any(verb.is_for(user) for verb in BULK_VERBS.values())


def undoable_by(user: Any) -> list[Undoable]:
    """Return the operations that the user has just requested."""
    rows = list(undoable(user)[:MOST_SHOWN])
    return _still(rows) if rows else []


def undoing_of(operation: Operation) -> list[Undoable]:
    """Return the operation in a list if it has not begun, else an empty list."""
    is_over = operation.finished_at is not None or operation.started_at is not None
    return [] if is_over or operation.starts_at is None else _still([operation])


def _still(operations: Iterable[Operation]) -> list[Undoable]:
    moment = now()
    found = (_undoable(operation, moment) for operation in operations)
    return [each for each in found if each is not None]


def _undoable(operation: Operation, moment: datetime) -> Undoable | None:
    if operation.starts_at is None or operation.starts_at <= moment:
        return None
    return Undoable(
        id=operation.id,
        label=label_of(operation),
        expected=operation.expected,
        seconds=math.ceil((operation.starts_at - moment).total_seconds()),
    )


def label_of(operation: Operation) -> str:
    """Return the verb's label; for a verb of a newer version, its name."""
    verb = KNOWN_VERBS.get(operation.verb)
    return operation.verb if verb is None else str(verb.label)
