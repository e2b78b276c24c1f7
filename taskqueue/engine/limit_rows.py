"""The parameters and results of the statements that claim under limits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple


class LimiterRow(NamedTuple):
    """A limiter that a claim has locked, with what its limit allows at this moment."""

    id: str
    name: str
    # How many at once; None: any number.
    concurrency: int | None
    # How many tokens in so many seconds; None: no rate.
    rate: int | None
    seconds: float | None
    smooth: bool
    # The starts of the last window, as it keeps them.
    starts: Any
    limit_id: int


class PassingTerms(NamedTuple):
    """The worker to whose next tasks places pass on, and how many may."""

    worker: str
    # Its queues, and the definitions that it cannot run.
    served: list[str]
    unknown: list[str]
    lease_duration: timedelta
    # How many, where something else may be there to claim; or else all.
    most: int


class PartitionRow(NamedTuple):
    """A partition that a claim has locked. Ids are 32 hexadecimal digits."""

    id: str
    queue_name: str
    lane: str
    # What its tasks have in common; None: all ordinary tasks of a limited queue.
    limits: dict[str, Any] | None
    limiters: tuple[str, ...]
    state: str
    head_priority: int
    rank: float
    waits_for: str | None
    opens_at: float | None
    holder: str | None
    # When something of it was taken, or it came to have tasks.
    changed_at: float

    @property
    def place(self) -> Place:
        """Return its place in its lane."""
        return Place(self.head_priority, self.rank, self.id)


class Place(NamedTuple):
    """A place among the open partitions of a lane: what they are sorted by."""

    priority: int | None
    rank: float | None
    id: str | None


# Before all others.
NO_PLACE = Place(None, None, None)


class Locked(NamedTuple):
    """The rows that a claim under limits has locked, and the notes that it has seen."""

    partitions: list[PartitionRow]
    limiters: list[LimiterRow]
    # Partitions and limiters that have notes, whether they could be locked or not; and the subjects
    # of notes of which there is no row.
    noted: frozenset[str]
    missing: list[str]
    # Limiters of these partitions that are not there.
    lacking: frozenset[str]
    # The limiters of limited queues, by queue, and queues of which nothing may be claimed.
    of_queues: Mapping[str, str]
    paused: frozenset[str]
    # Whether a task waits that belongs to no partition.
    has_others: bool
    # Whether others have locked some of the first open partitions.
    has_skipped: bool = False


class ReadyTask(NamedTuple):
    """A task that a claim under limits may take."""

    id: str
    partition: str
    priority: int
    run_after: float
    cost: int
    # Whether the worker knows its name; others are told of in sequences only, where they hold up.
    is_known: bool = True
    # The weight that its tenant had at its enqueue.
    weight: float = 1.0


class Holder(NamedTuple):
    """The task of a sequence that was taken last, and whether the others wait where it fails."""

    status: str
    halts: bool


class Counted(NamedTuple):
    """The counts and tasks that a claim has read under its locks."""

    now: datetime
    # How many leases take a place, by limiter.
    running: Mapping[str, int]
    # Partitions that waited for a limiter that was noted.
    freed: list[PartitionRow]
    # The first tasks of each partition, in the order of their claim.
    tasks: Mapping[str, list[ReadyTask]]
    # The tasks that were taken last, by partition, as far as they are there.
    holders: Mapping[str, Holder]
    # The least virtual time of tenants that have work, by queue and lane.
    floors: Mapping[tuple[str, str], float]
    # What limits say now, by their ids: concurrency, rate, seconds and whether it is smooth.
    bounds: Mapping[int, tuple[int | None, int | None, float | None, bool]]
    # Limiters that were noted, for which partitions wait that somebody holds.
    skipped: Collection[str]
    # Priority and time of the ordinary task that is next in a queue, of those that were asked for.
    rivals: Mapping[str, tuple[int, float]]


class Move(NamedTuple):
    """A partition as a claim leaves it."""

    id: str
    # `open`, `waiting` or `halted`; where no task of it is ready it becomes `empty`.
    state: str
    rank: float | None
    waits_for: str | None
    opens_at: float | None
    holder: str | None
    # Whether it is to be written where it has tasks left.
    is_news: bool
    # Whether it had tasks before, and none of them was taken.
    stays: bool


class Taking(NamedTuple):
    """The tasks that a claim under limits takes, and the rows that it writes."""

    # Ids of tasks in the order of the claim, each with its limiters.
    tasks: list[tuple[str, tuple[str, ...]]]
    # For each of them where it was found: its partition, if it has one, and its queue.
    found_in: list[tuple[str | None, str]]
    moves: list[Move]
    # What limiters keep of the starts of the last window.
    starts: Mapping[str, Any]
    # Limiters that have places left, for which more partitions may wait.
    again: list[str]


def least_by_lane(rows: Iterable[Sequence[Any]]) -> dict[tuple[str, str], float]:
    """Return the least rank of each queue and lane."""
    found: dict[tuple[str, str], float] = {}
    for queue_name, lane, rank in rows:
        found[queue_name, lane] = min(float(rank), found.get((queue_name, lane), math.inf))
    return found
