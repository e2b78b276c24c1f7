"""Tasks whose annotations say more than JSON has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

from taskqueue import Batch, task
from tests.sample.models import Effect

Cents = NewType("Cents", int)


class Colour(Enum):
    """Has values that JSON has."""

    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    """Numbers."""

    LOW = 1
    HIGH = 3


class Shape(Enum):
    """Has values that JSON has not."""

    POINT = (0, 0)
    LINE = (0, 1)


@dataclass(frozen=True)
class Line:
    """A part of an order."""

    article: UUID
    price: Decimal
    count: int = 1


@dataclass
class Order:
    """Has parts of its own kind."""

    day: date
    lines: list[Line] = field(default_factory=list)
    colour: Colour | None = None
    parent: Order | None = None


@task
def plain(
    number: int,
    ratio: float = 1.0,
    text: str = "",
    flag: bool = False,
    choice: Literal["a", "b"] | None = None,
    items: list[int] = [],  # noqa: B006
    table: dict[str, float] = {},  # noqa: B006
    price: Cents | None = None,
    *rest: int,
    **extra: str,
) -> Any:
    """Takes what JSON has."""
    return number


@task
def typed(
    at: datetime | None = None,
    day: date | None = None,
    clock: time | None = None,
    span: timedelta | None = None,
    price: Decimal | None = None,
    key: UUID | None = None,
    colour: Colour = Colour.RED,
    level: Level | None = None,
    shape: Shape | None = None,
    days: Sequence[date] = (),
    prices: dict[str, Annotated[Decimal, "euros"]] = {},  # noqa: B006
) -> str:
    """Return what it was given, as Python writes it."""
    given = (at, day, clock, span, price, key, colour, level, shape, list(days), prices)
    return repr(given)


@task
def ship(order: Order, *others: Order) -> str:
    """Return what it was given, as Python writes it."""
    return repr((order, *others))


@task(unique_key=lambda effect, day: f"{effect.note}:{day:%Y}")
def read_row(effect: Effect, day: date) -> str:
    """Return a field of the row."""
    return f"{effect.note} {day.year}"


@task(sensitive=["effects"])
def hide_rows(effects: list[Effect]) -> None:
    """Has rows that are a secret."""


@task(sensitive=["secret"])
def hide(secret: int) -> None:
    """Has a secret."""


@task(sensitive=["one"])
def hide_first(one: int, two: int = 0) -> None:
    """Do nothing."""


@task(sensitive=["two"])
def hide_second(one: int, two: str = "") -> None:
    """Do nothing."""


@task(sensitive=["token"])
def hide_keyword(**others: int) -> None:
    """Has a secret among its other keywords."""


@task
async def typed_async(day: date) -> int:
    """Return the year."""
    return day.year


@task
def next_day(day: date) -> str:
    """Return the day after, as text."""
    return (day + timedelta(days=1)).isoformat()


@task(batch=Batch(max_size=2, grace=0.1, max_delay=1))
def ship_many(orders: list[Order]) -> str:
    """Return what it was given, as Python writes it."""
    return repr(orders)
