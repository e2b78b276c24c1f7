"""The JSON in an operation's row: the choice of tasks, and the progress of the walk over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from taskqueue.engine.control.filters import TaskFilter
from taskqueue.models import Operation


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
        """As the row has it."""
        walk = operation.chosen.get("walk", {})
        return cls(
            is_through=walk.get("is_through", False),
            held=[UUID(text) for text in walk.get("held", ())],
            tries=walk.get("tries", 0),
            failures=walk.get("failures", 0),
            refused=walk.get("refused", 0),
            refusal=walk.get("refusal", ""),
        )

    def write(self, operation: Operation) -> None:
        """Put it into the row, which is not saved yet."""
        held = [str(each) for each in self.held]
        operation.chosen = {**operation.chosen, "walk": {**vars(self), "held": held}}


def chosen_json(which: TaskFilter) -> dict[str, Any]:
    """Return the first value of `Operation.chosen`."""
    return {"which": which.to_json()}


def which_of(operation: Operation) -> TaskFilter:
    """The tasks that an operation is about. Raises ValueError where that cannot be read."""
    return TaskFilter.from_json(operation.chosen["which"])


def held_count(operation: Operation) -> int:
    """How many tasks it will come back to, because somebody held them."""
    return len(operation.chosen.get("walk", {}).get("held", ()))
