"""The spans of time that are looked back on, and their steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from taskqueue.engine.sqlite.values import clock, stored

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_PART = timedelta(minutes=15)


@dataclass(frozen=True)
class Span:
    """So many steps of so many seconds, the last of which is not over yet."""

    step_seconds: int
    steps: int

    @property
    def step(self) -> timedelta:
        """How long each step is."""
        return timedelta(seconds=self.step_seconds)

    def starts(self, now: datetime) -> list[datetime]:
        """When each step begins: at whole multiples of its length."""
        last = EPOCH + (now - EPOCH) // self.step * self.step
        return [last - number * self.step for number in reversed(range(self.steps))]

    @property
    def part(self) -> timedelta:
        """How finely the rollups of the span are read: a step of a long span in several parts.

        Of a step that is not over, the parts that are need not be read again.
        """
        return min(self.step, LONGEST_PART)

    def parts(self, now: datetime) -> list[datetime]:
        """When each part of the steps begins, up to the one that is not over yet."""
        first = self.starts(now)[0]
        return [first + number * self.part for number in range((now - first) // self.part + 1)]

    def parameters(self) -> dict[str, Any]:
        """For the statements that sum rollups up: for PostgreSQL, which asks its own clock, the
        lengths; for SQLite, whose clock is this process's, the moments.
        """
        now = clock()
        return {
            "step": self.step,
            "rest": (self.steps - 1) * self.step,
            "seconds": self.step_seconds,
            "now": stored(now),
            "since": whole_seconds(self.starts(now)[0]),
        }


def whole_seconds(moment: datetime) -> str:
    """The start of a step as SQLite compares it.

    Django stores a whole second without a fraction, and with one it would sort behind that.
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


SPANS = {
    "hour": Span(step_seconds=60, steps=60),
    "day": Span(step_seconds=900, steps=96),
    "week": Span(step_seconds=7200, steps=84),
}


def span_of(name: str) -> Span:
    """The span of that name. Raises ValueError for another."""
    try:
        return SPANS[name]
    except KeyError:
        raise ValueError(f"{name!r} is no span. Choose from {', '.join(SPANS)}.") from None
