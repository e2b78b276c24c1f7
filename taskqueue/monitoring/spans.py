"""The spans of time that are looked back on, and their steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Span:
    """So many steps of so many seconds, the last of which is not over yet."""

    step_seconds: int
    steps: int

    def starts(self, now: datetime) -> list[datetime]:
        """When each step begins: at whole multiples of its length."""
        current = int((now - EPOCH).total_seconds()) // self.step_seconds
        return [
            EPOCH + timedelta(seconds=number * self.step_seconds)
            for number in range(current - self.steps + 1, current + 1)
        ]


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
