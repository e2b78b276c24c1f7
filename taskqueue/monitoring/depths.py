"""The recorded number of waiting tasks of a queue over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from taskqueue.engine.connections import database_alias
from taskqueue.engine.depths import ALL, RESOLUTIONS
from taskqueue.models import Depth
from taskqueue.monitoring.reading import now
from taskqueue.monitoring.rollups import EPOCH, span_of
from taskqueue.monitoring.series import Attempts, Series


@dataclass(frozen=True, kw_only=True)
class Depths(Series):
    """The most ready tasks in each step, oldest first; None if no worker recorded them."""

    steps: list[Attempts] = field(default_factory=list)
    waiting: list[int | None]
    # The steps in which there may have been more tasks than were counted.
    capped: frozenset[datetime] = frozenset()

    @property
    def is_capped(self) -> bool:
        """Whether there may have been more tasks than were counted."""
        return bool(self.capped)


def depths(span: str, *, queue_name: str = "") -> Depths:
    """Return how many tasks waited in each step, in one queue or in all.

    Raises ValueError for a span that is not in `SPANS`.
    """
    chosen = span_of(span)
    starts = chosen.starts(now())
    rows = Depth.objects.using(database_alias()).filter(
        resolution__in=RESOLUTIONS, starts_at__gte=starts[0], queue_name__in={queue_name, ALL}
    )
    most: dict[datetime, int] = {}
    capped: set[datetime] = set()
    columns = ("starts_at", "queue_name", "waiting", "is_capped")
    for starts_at, name, waiting, is_capped in rows.values_list(*columns):
        step = starts_at - (starts_at - EPOCH) % chosen.step
        # The row for all queues shows that it was recorded.
        number = waiting if name == queue_name else 0
        most[step] = max(most.get(step, 0), number)
        if is_capped and name == queue_name:
            capped.add(step)
    return Depths(
        span=span,
        step_seconds=chosen.step_seconds,
        starts=starts,
        waiting=[most.get(start) for start in starts],
        capped=frozenset(capped),
    )


def highest(numbers: Iterable[int | None]) -> int:
    """Return the highest of the known numbers; 0 if none is known."""
    return max((number for number in numbers if number is not None), default=0)
