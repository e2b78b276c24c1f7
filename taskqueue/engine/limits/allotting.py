"""Decide how many tasks each partition gives, given places and tokens. No database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from taskqueue.core.rates import Tokens, tokens_of
from taskqueue.declarations.placement import is_ahead_allowed
from taskqueue.engine.limit_rows import LimiterRow, PartitionRow, ReadyTask

# The sort key of a partition within its lane.
Order = tuple[float, int, float, str]


@dataclass
class Limiter:
    """A limiter with the places and tokens that it has left."""

    id: str
    # Free places; None if the number is not limited.
    places: int | None
    tokens: Tokens | None

    @classmethod
    def of(cls, row: LimiterRow, *, running: int, now: float) -> Limiter:
        """Return what is left of a limiter while `running` leases take its places."""
        tokens = None
        if row.rate is not None and row.seconds is not None:
            tokens = tokens_of(row.rate, row.seconds, smooth=row.smooth, stored=row.starts, now=now)
        places = None if row.concurrency is None else max(0, row.concurrency - running)
        return cls(row.id, places, tokens)

    def is_full(self) -> bool:
        """Return whether no task may start until a lease ends or the limit is changed."""
        return self.places == 0 or (self.tokens is not None and self.tokens.rate == 0)

    def opens_at(self, cost: int, now: float) -> float | None:
        """Return when `cost` tokens will be available; None if they are now."""
        if self.tokens is None:
            return None
        cost = self._cost(cost)
        return None if self.tokens.left(now) >= cost else self.tokens.ready_at(cost, now)

    def take(self, cost: int, now: float) -> None:
        """Take a place and `cost` tokens."""
        if self.places is not None:
            self.places -= 1
        if self.tokens is not None:
            self.tokens.take(self._cost(cost), now)

    def _cost(self, cost: int) -> int:
        """Return how many tokens a task takes. A rate that was lowered below the cost caps it."""
        return cost if self.tokens is None else min(cost, self.tokens.rate)


@dataclass
class Share:
    """A partition during the allotment: the tasks that it gives, and why it gives no more."""

    row: PartitionRow
    limiters: tuple[Limiter, ...]
    # The limiters of the claiming worker and its host. If they are full, those of others may not
    # be.
    own: tuple[Limiter, ...]
    # The tasks that it may give, in order.
    tasks: list[ReadyTask]
    taken: list[ReadyTask] = field(default_factory=list)
    # The virtual time of its tenant.
    vtime: float = 0.0
    # The limiter that is full, or the time of the next token.
    waits_for: str | None = None
    opens_at: float | None = None

    @property
    def tenant(self) -> Mapping[str, float] | None:
        """Return the data of the tenant; None if the partition has no tenant."""
        return None if self.row.limits is None else self.row.limits.get("tenant")

    @property
    def next(self) -> ReadyTask | None:
        """Return the task that it would give next."""
        return self.tasks[len(self.taken)] if len(self.taken) < len(self.tasks) else None

    def is_cut_off(self, depth: int) -> bool:
        """Return whether it gave all tasks that were read, and may have more that go first."""
        is_closed = self.waits_for or self.opens_at or self.row.limits is None
        return not is_closed and self.next is None and len(self.tasks) >= depth

    @property
    def is_for_others(self) -> bool:
        """Return whether it may give more tasks, but only to a worker with a free slot."""
        limits = self.row.limits or {}
        is_closed = self.waits_for or self.opens_at or "sequence" in limits
        return not (is_closed or is_ahead_allowed(limits))

    @property
    def passes_on(self) -> bool:
        """Return whether a task may hand its place to the next: nothing else must be counted."""
        limits = self.row.limits or {}
        is_plain = not self.own and self.tenant is None and "sequence" not in limits
        is_own = 0 < len(self.limiters) == len(self.row.limiters)
        return is_plain and is_own and all(each.tokens is None for each in self.limiters)

    def order(self, task: ReadyTask) -> Order:
        """Return its position among the partitions of its lane; for tenants, by virtual time."""
        if self.tenant is not None:
            return (self.vtime, 0, 0.0, task.id)
        return (-task.priority, len(self.taken), task.run_after, task.id)

    def is_closed(self, task: ReadyTask, now: float) -> bool:
        """Return whether a limiter has no place or token for the task, and record which limiter."""
        if any(each.is_full() or each.opens_at(task.cost, now) for each in self.own):
            return True
        for limiter in self.limiters:
            if limiter.is_full():
                self.waits_for = limiter.id
                return True
        moments = [limiter.opens_at(task.cost, now) for limiter in self.limiters]
        self.opens_at = max((moment for moment in moments if moment is not None), default=None)
        return self.opens_at is not None

    def close_if_full(self) -> None:
        """Record which limiter the taken tasks have filled, even if no known task waits.

        Whether other tasks wait is checked when the partition is written.
        """
        full = (limiter.id for limiter in self.limiters if limiter.is_full())
        self.waits_for = self.waits_for or next(full, None)

    def take(self, task: ReadyTask, now: float) -> None:
        """Give the task, and take its places and tokens."""
        for limiter in (*self.limiters, *self.own):
            limiter.take(task.cost, now)
        self.taken.append(task)
        if self.tenant is not None:
            self.vtime += task.cost / task.weight


def allot(
    shares: Iterable[Share],
    quotas: Mapping[str, int],
    *,
    free: int,
    now: float,
    goes: Callable[[str, ReadyTask], bool],
) -> Iterator[Share]:
    """Take tasks up to the quota of each queue, round by round. Yield the partition of each task.

    Tasks that must not be claimed ahead are only among the first `free` tasks.

    Lanes take turns. The first is the lane with the partition that has given nothing for longest;
    among several, the lane with the oldest task. Within a lane, the highest priority goes first,
    then the partition that has given fewest tasks, then the task that has waited longest. Tenants
    are ordered by virtual time: start-time fair queueing (Goyal, Vin and Cheng, 1996).
    `goes(queue_name, task)` says whether a task may be taken at all.
    """
    heaps: dict[tuple[str, str], list[tuple[Order, Share]]] = {}
    oldest: dict[tuple[str, str], tuple[int, float, float]] = {}
    for share in shares:
        if (task := share.next) is not None:
            lane = share.row.queue_name, share.row.lane
            heaps.setdefault(lane, []).append((share.order(task), share))
            age = -task.priority, share.row.changed_at, task.run_after
            oldest[lane] = min(age, oldest.get(lane, age))
    for heap in heaps.values():
        heapify(heap)
    left = dict(quotas)
    number = 0
    # If lanes share a limit, the lane with the oldest tasks must not always be asked first.
    lanes = sorted(heaps, key=lambda lane: (oldest[lane], lane))
    while lanes:
        for lane in list(lanes):
            giver = None
            if left.get(lane[0], 0) > 0:
                giver = _next_of(heaps[lane], now, goes, has_free=number < free)
            if giver is None:
                lanes.remove(lane)
                continue
            left[lane[0]] -= 1
            number += 1
            yield giver


def _next_of(
    heap: list[tuple[Order, Share]],
    now: float,
    goes: Callable[[str, ReadyTask], bool],
    *,
    has_free: bool,
) -> Share | None:
    """Take one task of the first partition that is not closed. Return None if all are closed."""
    while heap:
        _, share = heappop(heap)
        task = share.next
        if task is None or share.is_closed(task, now):
            continue
        if not goes(share.row.queue_name, task):
            continue
        if not has_free and not is_ahead_allowed(share.row.limits):
            continue
        share.take(task, now)
        if (following := share.next) is not None:
            heappush(heap, (share.order(following), share))
        return share
    return None
