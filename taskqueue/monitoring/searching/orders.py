"""The orders of lists of tasks, the directions of reading, and the cursors of pages."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from taskqueue.models import Task

# The values of an order's columns in a row.
Place = tuple[Any, ...]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_CURSOR = 100


@dataclass(frozen=True)
class Order:
    """Columns whose combined values are unique, in the order of an index."""

    letter: str
    columns: tuple[str, ...]

    def of(self, task: Task) -> Place:
        """Return the place of a task."""
        return tuple(getattr(task, column) for column in self.columns)


@dataclass(frozen=True)
class Walk:
    """A direction through the tasks of an order: to newer or to older ones."""

    order: Order
    is_to_newer: bool

    def sorted(self, tasks: QuerySet[Any]) -> QuerySet[Any]:
        """Sort the rows in this direction."""
        sign = "" if self.is_to_newer else "-"
        return tasks.order_by(*(f"{sign}{column}" for column in self.order.columns))

    def beyond(self, place: Place | None) -> Q:
        """Return a condition for rows after a place."""
        lookup = "gt" if self.is_to_newer else "lt"
        return self._past(place, lookup, lookup)

    def up_to(self, place: Place | None) -> Q:
        """Return a condition for rows up to a place."""
        lookup = "lt" if self.is_to_newer else "gt"
        return self._past(place, lookup, f"{lookup}e")

    def _past(self, place: Place | None, lookup: str, last: str) -> Q:
        """Return the condition in a form whose first column bounds the range of the index."""
        if place is None:
            return Q()
        *before, task_id = place
        by_id = Q(**{f"id__{last}": task_id})
        if not before:
            return by_id
        [first], name = before, self.order.columns[0]
        return Q(**{f"{name}__{lookup}e": first}) & (Q(**{f"{name}__{lookup}": first}) | by_id)

    def is_past(self, place: Place, other: Place) -> bool:
        """Return whether a place comes after the other."""
        return place > other if self.is_to_newer else place < other

    def place_after(self, number: int, rows: QuerySet[Any]) -> Place | None:
        """Return the place that many rows further on; None if fewer are left."""
        places = self.sorted(rows).values_list(*self.order.columns)
        return next(iter(places[number - 1 : number]), None)

    def beside(self, place: Place) -> Place:
        """Return the adjacent place: the opposite direction from there includes this place."""
        *before, task_id = place
        number = task_id.int + (1 if self.is_to_newer else -1)
        return (*before, UUID(int=min(max(number, 0), 2**128 - 1)))


BY_ID = Order("i", ("id",))
BY_END = Order("f", ("finished_at", "id"))
ORDERS = {order.letter: order for order in (BY_ID, BY_END)}


def cursor_of(order: Order, place: Place) -> str:
    """Return a place as a cursor."""
    *before, task_id = place
    microseconds = [str((moment - EPOCH) // timedelta(microseconds=1)) for moment in before]
    parts = [order.letter, *microseconds, task_id.hex]
    return base64.urlsafe_b64encode(".".join(parts).encode()).decode().rstrip("=")


def place_at(order: Order, cursor: str) -> Place | None:
    """Return the place of a cursor; None if it is invalid or belongs to another order."""
    if not cursor or len(cursor) > LONGEST_CURSOR:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode()
        letter, *moments, digits = text.split(".")
        before = tuple(EPOCH + timedelta(microseconds=int(moment)) for moment in moments)
        place = (*before, UUID(hex=digits))
    except (ValueError, OverflowError, binascii.Error):
        return None
    return place if letter == order.letter and len(place) == len(order.columns) else None


def offset_cursor(offset: int) -> str:
    """Return a cursor for a position in a list that is sorted anew for each page."""
    return base64.urlsafe_b64encode(f"s.{offset}".encode()).decode().rstrip("=")


def offset_of(cursor: str) -> int | None:
    """Return the position of such a cursor; None for any other cursor."""
    try:
        text = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode()
    except (ValueError, binascii.Error):
        return None
    letter, _dot, number = text.partition(".")
    is_number = number.isascii() and number.isdecimal() and len(number) < 10
    return int(number) if letter == "s" and is_number else None


def is_cursor(text: str) -> bool:
    """Whether the text is a cursor of any order."""
    if len(text) <= LONGEST_CURSOR and offset_of(text) is not None:
        return True
    return any(place_at(order, text) is not None for order in ORDERS.values())


def first_id_at(moment: datetime) -> UUID:
    """Return the lowest id of a time: ids begin with their time."""
    milliseconds = max(0, (moment - EPOCH) // timedelta(milliseconds=1))
    return UUID(int=min(milliseconds, 2**48 - 1) << 80)


def time_of(place: Place) -> datetime | None:
    """Return about when that task ended or was enqueued; None if unknown."""
    if len(place) > 1:
        moment: datetime = place[0]
        return moment
    task_id: UUID = place[0]
    if task_id.version != 7:
        return None
    try:
        return EPOCH + timedelta(milliseconds=task_id.int >> 80)
    except OverflowError:
        return None
