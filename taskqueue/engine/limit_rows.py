"""The parameters and results of the statements that claim under limits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple


class LimiterRow(NamedTuple):
    """A limiter that a claim has locked, with what its limit allows now."""

    id: str
    name: str
    # How many tasks may run at once; None if any number may.
    concurrency: int | None
    # How many tokens each window of `seconds` has; None if the limit has no rate.
    rate: int | None
    seconds: float | None
    smooth: bool
    # The recent starts, in the stored form.
    starts: Any
    limit_id: int


class PassingTerms(NamedTuple):
    """The worker whose next tasks take the places of ended ones, and how many may."""

    worker: str
    # The queues that it serves, and the definitions that it cannot run.
    served: list[str]
    unknown: list[str]
    lease_duration: timedelta
    # The most places to pass on while there may be other tasks to claim; otherwise all pass on.
    most: int


class PartitionRow(NamedTuple):
    """A partition that a claim has locked. Ids are 32 hexadecimal digits."""

    id: str
    queue_name: str
    lane: str
    # The common limits of its tasks; None for the ordinary tasks of a limited queue.
    limits: dict[str, Any] | None
    limiters: tuple[str, ...]
    state: str
    head_priority: int
    rank: float
    waits_for: str | None
    opens_at: float | None
    holder: str | None
    # When one of its tasks was last claimed, or it last became nonempty.
    changed_at: float

    @property
    def place(self) -> Place:
        """Return its position in its lane."""
        return Place(self.head_priority, self.rank, self.id)


class Place(NamedTuple):
    """A position among the open partitions of a lane, with the values by which they are sorted."""

    priority: int | None
    rank: float | None
    id: str | None


# The position before all others.
NO_PLACE = Place(None, None, None)


class Locked(NamedTuple):
    """The rows that a claim under limits has locked, and the notes that it has seen."""

    partitions: list[PartitionRow]
    limiters: list[LimiterRow]
    # Partitions and limiters that have notes, whether or not they could be locked; and the subjects
    # of notes that have no row.
    noted: frozenset[str]
    missing: list[str]
    # Limiters of these partitions that do not exist.
    lacking: frozenset[str]
    # The limiters of limited queues, by queue; and the queues from which nothing may be claimed.
    of_queues: Mapping[str, str]
    paused: frozenset[str]
    # Whether tasks wait that belong to no partition.
    has_others: bool
    # Whether other sessions have locked some of the first open partitions.
    has_skipped: bool = False


class ReadyTask(NamedTuple):
    """A task that a claim under limits may take."""

    id: str
    partition: str
    priority: int
    run_after: float
    cost: int
    # Whether the worker knows its definition. Unknown ones are read only in sequences, which they
    # hold up.
    is_known: bool = True
    # The weight of its tenant at the time of its enqueue.
    weight: float = 1.0


class Holder(NamedTuple):
    """The task of a sequence that was claimed last, and whether its failure halts the sequence."""

    status: str
    halts: bool


class Counted(NamedTuple):
    """The counts and tasks that a claim has read under its locks."""

    now: datetime
    # How many leases take a place, by limiter.
    running: Mapping[str, int]
    # Partitions that waited for a limiter that was noted.
    freed: list[PartitionRow]
    # The first tasks of each partition, in claim order.
    tasks: Mapping[str, list[ReadyTask]]
    # The tasks that were claimed last, by partition, if they still exist.
    holders: Mapping[str, Holder]
    # The least virtual time of the tenants that have work, by queue and lane.
    floors: Mapping[tuple[str, str], float]
    # The current numbers of limits by id: concurrency, rate, seconds, and whether it is smooth.
    bounds: Mapping[int, tuple[int | None, int | None, float | None, bool]]
    # Noted limiters for which partitions wait that other sessions have locked.
    skipped: Collection[str]
    # Priority and time of the next ordinary task of each queue that was asked for.
    rivals: Mapping[str, tuple[int, float]]


class Move(NamedTuple):
    """The new state of a partition after a claim."""

    id: str
    # `open`, `waiting` or `halted`; it becomes `empty` if no task of it is ready.
    state: str
    rank: float | None
    waits_for: str | None
    opens_at: float | None
    holder: str | None
    # Whether it must be written even if it has tasks left.
    is_news: bool
    # Whether it had tasks before, and none of them was claimed.
    stays: bool


class Taking(NamedTuple):
    """The tasks that a claim under limits takes, and the rows that it writes."""

    # Ids of tasks in claim order, each with its limiters.
    tasks: list[tuple[str, tuple[str, ...]]]
    # For each of these tasks, its partition, if it has one, and its queue.
    found_in: list[tuple[str | None, str]]
    moves: list[Move]
    # The recent starts of limiters, in the stored form.
    starts: Mapping[str, Any]
    # Limiters that have places left, for which more partitions may wait.
    again: list[str]


def least_by_lane(rows: Iterable[Sequence[Any]]) -> dict[tuple[str, str], float]:
    """Return the least rank of each queue and lane."""
    found: dict[tuple[str, str], float] = {}
    for queue_name, lane, rank in rows:
        found[queue_name, lane] = min(float(rank), found.get((queue_name, lane), math.inf))
    return found
