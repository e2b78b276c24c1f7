"""Operations as they are stored, and the JSON of their progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from django.db.models import QuerySet

from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import TaskFilter
from taskqueue.exceptions import OperationDoesNotExist
from taskqueue.models.operation import Operation


def operations() -> QuerySet[Operation]:
    """Return all of them, the newest first, without the ids that were chosen one by one."""
    return Operation.objects.using(database_alias()).order_by("-id").defer("chosen")


def get_operation(operation_id: UUID | str) -> Operation:
    """Return one of them. Raises `OperationDoesNotExist`."""
    try:
        return Operation.objects.using(database_alias()).get(id=UUID(str(operation_id)))
    except (ValueError, Operation.DoesNotExist):
        raise OperationDoesNotExist(f"There is no operation {operation_id}.") from None


def which_of(operation: Operation) -> TaskFilter:
    """Return the tasks of an operation. Raises ValueError where that cannot be read."""
    return TaskFilter.from_json(operation.chosen["which"])


@dataclass(kw_only=True)
class Walk:
    """How far an operation is, beside `next_after`."""

    # Whether it has come to all of them once.
    is_through: bool = False
    # Tasks that somebody held when it came to them; it comes back to these at the end.
    held: list[UUID] = field(default_factory=list)
    # How often it has come back to them.
    tries: int = 0
    # Chunks in a row that an error ended.
    failures: int = 0
    # Tasks that could not take what they were given.
    refused: int = 0
    # Why the first of them could not.
    refusal: str = ""

    @classmethod
    def of(cls, operation: Operation) -> Self:
        """Return it as the row has it."""
        walk = operation.chosen.get("walk", {})
        known = {name: walk[name] for name in vars(cls()) if name in walk}
        return cls(**known | {"held": [UUID(text) for text in walk.get("held", ())]})

    def write(self, operation: Operation) -> None:
        """Put it into the row, which is not saved yet."""
        held = [str(task_id) for task_id in self.held]
        operation.chosen = {**operation.chosen, "walk": {**vars(self), "held": held}}


def held_count(operation: Operation) -> int:
    """Return how many tasks it will come back to, because somebody held them."""
    return len(operation.chosen.get("walk", {}).get("held", ()))
