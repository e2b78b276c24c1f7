"""Limits: the numbers in effect, and the running and waiting tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from taskqueue.core.rates import tokens_of
from taskqueue.declarations.rates import rate_text
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.filters import is_storable
from taskqueue.engine.control.limits import name_of_queue
from taskqueue.models import Limit
from taskqueue.models.limit import Per
from taskqueue.monitoring.counts import CAP, Count
from taskqueue.monitoring.limit_statements import KEYS, OF_QUEUES, RUNNING, STARTS, WAITING
from taskqueue.monitoring.read_models.base import about, from_row
from taskqueue.monitoring.reading import now, read

MOST_KEYS = 100
# The most keys of each limit whose starts are read.
MOST_STARTS = 100
PREFIX = "queue:"


@dataclass(frozen=True, kw_only=True)
class ShownNumbers:
    """How many run at once, and how many start in every window; null: any number."""

    concurrency: int | None
    rate: str | None = about("Such as 100/m, 5/10s or 1/h.")

    def __str__(self) -> str:
        parts = [] if self.concurrency is None else [f"concurrency {self.concurrency}"]
        return ", ".join([*parts, *([] if self.rate is None else [f"rate {self.rate}"])])


@dataclass(frozen=True, kw_only=True)
class ShownLimit:
    """A limit at this moment."""

    name: str
    per: str = about(
        "What it is counted for: each value of its key, each host or worker, or a queue.",
        choices=[each.value for each in Per],
    )
    queue_name: str | None = about("The queue that is limited; null: code declares the limit.")
    concurrency: int | None = about("How many run at once; with 0, all its tasks wait; null: any.")
    rate: str | None = about("How many start in every window, such as 100/m; null: any number.")
    smooth: bool = about("Whether its starts are spaced evenly.")
    declared: ShownNumbers | None = about("What code declares; null: the limit of a queue.")
    is_overridden: bool = about("Whether other numbers hold than those that code declares.")
    running: int = about("Leases that take a place, of all its keys.")
    fullest: int = about("Those of the key, host or worker that has most of them.")
    waiting: int = about("Ready tasks that wait for a place or a token, counted up to a cap.")
    is_waiting_capped: bool = about("Whether there may be more.")
    used_ratio: float | None = about(
        "How much of its rate is used, of the key that has used most; null: it has no rate.",
        in_json=False,
    )

    @property
    def waiting_count(self) -> Count:
        """The number of waiting tasks, formatted."""
        return Count(self.waiting, self.is_waiting_capped)

    @property
    def used_percent(self) -> int:
        """How much of its rate is used, in whole percent."""
        return round(100 * (self.used_ratio or 0.0))

    @property
    def allowed(self) -> ShownNumbers:
        """The numbers that hold."""
        return ShownNumbers(concurrency=self.concurrency, rate=self.rate)


@dataclass(frozen=True, kw_only=True)
class ShownLimitKey:
    """A key of a limit, or a host or worker, in its current state."""

    key: str = about("Empty: the limit has one for all its tasks.")
    running: int = about("Leases that take a place.")
    waiting: int = about("Ready tasks that wait for a place or a token, counted up to a cap.")
    is_waiting_capped: bool = about("Whether there may be more.")
    oldest_seconds: float | None = about("How long the first of them has been due.")
    used: int | None = about("Tokens of the last window that are used; null: no rate.")

    @property
    def waiting_count(self) -> Count:
        """The number of waiting tasks, formatted."""
        return Count(self.waiting, self.is_waiting_capped)


@dataclass
class _Figures:
    """The counts of running and waiting tasks, by the id of a limit."""

    running: dict[int, tuple[int, int]] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    capped: set[int] = field(default_factory=set)
    starts: dict[int, list[Any]] = field(default_factory=dict)


def limit_rows() -> Any:
    """The rows of all limits, by name."""
    return Limit.objects.using(database_alias()).order_by("name")


def read_limits(*, limit: int = 1_000) -> list[ShownLimit]:
    """Return the limits by name, in a few statements."""
    return shown_limits(limit_rows()[:limit])


def limit_named(name: str) -> ShownLimit | None:
    """Return the limit of that name; None if there is none."""
    rows = list(limit_rows().filter(name=name)) if is_storable(name) else []
    return next(iter(shown_limits(rows)), None)


def shown_limits(rows: Iterable[Any]) -> list[ShownLimit]:
    """Make the read models of these rows."""
    found = list(rows)
    if not found:
        return []
    figures, moment = _figures(), now()
    return [_shown(row, figures, moment) for row in found]


def keys_of(row: Any) -> list[ShownLimitKey]:
    """Return the keys of a limit with the most waiting tasks, then with the most taken places."""
    rate, seconds = rate_of_row(row)
    moment = now()
    rows = read(KEYS, limit=row.id, has_rate=rate is not None, most=MOST_KEYS)
    if row.per == Per.QUEUE:  # All ordinary tasks of the queue wait for its only limiter.
        of_queues = {id: waits for id, *waits in read(OF_QUEUES, cap=CAP + 1)}
        number, oldest = of_queues.get(row.id, (0, None))
        waits = (min(number, CAP), oldest, number > CAP)
        rows = [(key, starts, running, *waits) for key, starts, running, *_ in rows]
    return [
        ShownLimitKey(
            key=key,
            running=running,
            waiting=waiting,
            is_waiting_capped=bool(is_capped),
            oldest_seconds=None if oldest is None else max(0.0, float(oldest)),
            used=None
            if rate is None
            else _used(row, rate, seconds, starts and json.loads(starts), moment),
        )
        for key, starts, running, waiting, oldest, is_capped in rows
    ]


def numbers_of_queues(names: Iterable[str]) -> dict[str, ShownNumbers]:
    """Return the limits of these queues, by their names."""
    rows = limit_rows().filter(per=Per.QUEUE, name__in=[name_of_queue(name) for name in names])
    return {row.name.removeprefix(PREFIX): _numbers(row) for row in rows}


def rate_of_row(row: Any) -> tuple[int | None, float]:
    """Return the current number of tokens of each window, and its seconds."""
    if row.rate_override is not None:
        return row.rate_override, row.seconds_override or 1.0
    return row.rate, row.seconds or 1.0


def concurrency_of_row(row: Any) -> int | None:
    """Return how many tasks may currently run at once."""
    held: int | None = row.concurrency_override
    return row.concurrency if held is None else held


def _numbers(row: Any) -> ShownNumbers:
    """Return the current numbers."""
    rate, seconds = rate_of_row(row)
    text = None if rate is None else rate_text(rate, seconds)
    return ShownNumbers(concurrency=concurrency_of_row(row), rate=text)


def _shown(row: Any, figures: _Figures, moment: datetime) -> ShownLimit:
    allowed = _numbers(row)
    declared = None if row.rate is None else rate_text(row.rate, row.seconds)
    waiting = figures.waiting.get(row.id, 0)
    running, fullest = figures.running.get(row.id, (0, 0))
    return from_row(
        ShownLimit,
        row,
        queue_name=row.name.removeprefix(PREFIX) if row.per == Per.QUEUE else None,
        concurrency=allowed.concurrency,
        rate=allowed.rate,
        declared=None
        if row.per == Per.QUEUE
        else ShownNumbers(concurrency=row.concurrency, rate=declared),
        is_overridden=row.concurrency_override is not None or row.rate_override is not None,
        running=running,
        fullest=fullest,
        waiting=min(waiting, CAP),
        is_waiting_capped=row.id in figures.capped or waiting > CAP,
        used_ratio=_ratio(row, figures.starts.get(row.id, []), moment),
    )


def _figures() -> _Figures:
    figures = _Figures(running={id: (number, most) for id, number, most in read(RUNNING)})
    for id, number, is_capped in read(WAITING):
        figures.waiting[id] = int(number)
        figures.capped |= {id} if is_capped else set()
    for id, number, _ in read(OF_QUEUES, cap=CAP + 1):
        figures.waiting[id] = figures.waiting.get(id, 0) + number
    for id, starts in read(STARTS, most=MOST_STARTS):
        figures.starts.setdefault(id, []).append(json.loads(starts))
    return figures


def _ratio(row: Any, starts: Iterable[Any], moment: datetime) -> float | None:
    rate, seconds = rate_of_row(row)
    if rate is None:
        return None
    used = (_used(row, rate, seconds, each, moment) for each in starts)
    return max(used, default=0) / rate if rate else 1.0


def _used(
    row: Any, rate: int, seconds: float, starts: Mapping[str, Any] | None, moment: datetime
) -> int:
    """Return how many tokens of the last window are used; for an even rate, all or none."""
    at = moment.timestamp()
    return rate - tokens_of(rate, seconds, smooth=row.smooth, stored=starts, now=at).left(at)
