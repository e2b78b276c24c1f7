"""The values in which the tasks of one enqueue differ, and the result of an enqueue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, overload

from taskqueue.declarations.placement import Placement
from taskqueue.models.task import Route

BLOCK = 500
"""How many payloads are made and sent at a time."""
ID_BYTES = 16
OWN_COLUMNS = ("id", "args", "kwargs")
PLACEMENT_COLUMNS = ("partition", "limits")
KEY_COLUMNS = ("unique_key", "unique_scope", "unique_for", "unique_until", "holds_unique_key")
NO_KEY = dict.fromkeys(KEY_COLUMNS) | {
    "unique_scope": "", "unique_for": "", "unique_in": None, "holds_unique_key": False,
}  # fmt: skip
NOT_PLACED = dict.fromkeys(PLACEMENT_COLUMNS)


class Payload(NamedTuple):
    """One task's id as 32 hexadecimal digits, its arguments as JSON text, and its key.

    If the task is limited, also its placement.
    """

    id: str
    args: str
    kwargs: str
    unique_key: str | None
    placement: Placement | None = None


class Columns(NamedTuple):
    """Payloads that consist only of ids and positional arguments, column by column."""

    ids: bytes
    args: Sequence[str]

    def hexes(self) -> list[str]:
        """Return their ids as text."""
        text, length = self.ids.hex(), 2 * ID_BYTES
        return [text[at : at + length] for at in range(0, len(text), length)]

    def payload(self, place: int) -> Payload:
        """Return one payload as a row."""
        id = self.ids[ID_BYTES * place : ID_BYTES * (place + 1)]
        return Payload(id.hex(), self.args[place], "{}", None)


class LatePayloads(Sequence[Payload]):
    """Payloads without keys and limits; blocks of them are made when they are first needed.

    So during a COPY a block can be made while the server reads the one before. Only Python code
    without database queries runs then.
    """

    def __init__(self, size: int, blocks: Iterator[Columns]) -> None:
        """Each of the blocks holds `BLOCK` payloads, the last one the rest."""
        self._size = size
        self._blocks = blocks
        self._made: list[Columns] = []

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> Payload: ...
    @overload
    def __getitem__(self, place: slice) -> list[Payload]: ...
    def __getitem__(self, place: int | slice) -> Payload | list[Payload]:
        wanted = range(self._size)[place]
        if isinstance(wanted, range):
            return [self[each] for each in wanted]
        number, rest = divmod(wanted, BLOCK)
        return self._block(number).payload(rest)

    def __iter__(self) -> Iterator[Payload]:
        for columns in self.columns():
            yield from map(columns.payload, range(len(columns.args)))

    def columns(self) -> Iterator[Columns]:
        """Yield the blocks, each as soon as it is made."""
        # By number, because other code may make the next blocks meanwhile.
        for number in range(-(-self._size // BLOCK)):
            yield self._block(number)

    def _block(self, number: int) -> Columns:
        while len(self._made) <= number:
            self._made.append(next(self._blocks))
        return self._made[number]


class Enqueued(NamedTuple):
    """The result of one enqueue."""

    id: str
    status: str
    enqueued_at: datetime
    ready_at: datetime | None
    created: bool = True
    updated: bool = False
    # The name of the task that holds the unique key, which may belong to another definition.
    name: str | None = None


def payload_columns(payload: Payload) -> dict[str, Any]:
    """Return the columns that depend on a payload."""
    id, args, kwargs, unique_key, placement = payload
    own = {"id": id, "args": args, "kwargs": kwargs, **placement_columns(placement)}
    if unique_key is None:
        return own | NO_KEY
    return own | {"unique_key": unique_key, "holds_unique_key": True}


def placement_columns(placement: Placement | None) -> dict[str, Any]:
    """Return the columns of a placement, and the route of a limited task."""
    if placement is None:
        return NOT_PLACED
    return {**placement._asdict(), "route": Route.PARTITION.value}
