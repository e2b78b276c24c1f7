"""One transaction of a claim under limits: lock, count, allot, take, and write new states."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import transaction
from taskqueue.engine.dialect import as_uuid, dialect_for
from taskqueue.engine.limit_rows import Counted, Locked, PartitionRow, Place, Taking
from taskqueue.engine.limits.allotting import Share
from taskqueue.engine.limits.claimant import Claimant
from taskqueue.engine.limits.lanes import lane_from
from taskqueue.engine.limits.making import Own, own_limiters
from taskqueue.engine.limits.moves import (
    has_closed,
    is_same,
    is_to_write,
    move_of,
    pass_unknown,
    reopened_of,
    with_places,
)
from taskqueue.engine.limits.sharing import give, passing_of, shares_of
from taskqueue.engine.notify import PLACES
from taskqueue.engine.rows import Claimed
from taskqueue.models.limit import PartitionState

# The most notes of one transaction, and partitions of a lane to lock beyond the wanted tasks.
MOST_NOTED, SPARE = 64, 4


class Turn:
    """One transaction of a claim."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        claimant: Claimant,
        lanes: Collection[tuple[str, str]],
        *,
        want: int,
        free: int,
        unknown: Sequence[str],
        lease_duration: timedelta,
        is_first: bool,
        is_within: bool,
        waits: bool,
        first: UUID,
        behind: dict[tuple[str, str], Place],
    ) -> None:
        self._connection = connection
        self._is_first, self._is_within, self._waits = is_first, is_within, waits
        self._dialect = dialect_for(connection)
        self._claimant = claimant
        self._lanes, self._first = sorted(lanes), first
        self._want, self._free = want, free
        # The most partitions to lock of a lane, or of those that wait for a limiter.
        self._size = want + SPARE
        self._unknown = unknown
        self._lease_duration = lease_duration
        self._behind = behind
        self._counted_at = 0.0
        # Whether the first partitions of a lane had nothing for this worker or turned out to be
        # closed, and more follow.
        self.has_passed = False
        # Subjects of notes that have no row.
        self.missing: list[str] = []
        # Limits of partitions that have lost a limiter to pruning.
        self.broken: list[Mapping[str, Any]] = []
        # Whether tasks are left that could be claimed as soon as other sessions release their
        # locks.
        self.is_left = False
        self.has_others = False
        # When the next token comes for tasks that are left, by the monotonic clock.
        self.opens_at = math.inf
        # The lanes of partitions that were opened here and have tasks left.
        self.opened: set[tuple[str, str]] = set()
        # The partitions of leases whose places may be handed to the next task, by lease.
        self.passing: dict[int, str] = {}

    def run(self) -> list[Claimed]:
        """These lanes may need limiters, which another transaction makes."""
        if self._is_within:  # These lanes may need limiters, which another transaction makes.
            self._lanes = [pair for pair in self._lanes if not lane_from(pair[1]).per]
        own = own_limiters(self._connection, self._claimant, self._lanes)
        claimed: list[Claimed] = []
        with nullcontext() if self._is_within else transaction(self._connection):
            locked = self._dialect.lock_limits(
                self._connection,
                lanes=self._lanes,
                own=[id for ids in own.values() for id in ids],
                size=self._size,
                most=self._size if self._is_within else MOST_NOTED,
                first=self._first,
                behind=self._behind,
                waits=self._waits,
            )
            rows = {row.id: row for row in locked.partitions}
            unseen = locked.noted - {*rows, *(limiter.id for limiter in locked.limiters)}
            if rows or locked.noted - unseen:
                claimed = self._take(rows, locked, own)
        self.has_others = locked.has_others
        self.missing = locked.missing
        self.is_left = self.is_left or len(self.missing) < len(unseen)
        # The sessions that hold the skipped rows may leave tasks for a free slot.
        is_short = len(claimed) < min(self._want, self._free)
        self.is_left = self.is_left or (locked.has_skipped and is_short)
        return claimed

    def _take(
        self,
        rows: dict[str, PartitionRow],
        locked: Locked,
        own: Own,
    ) -> list[Claimed]:
        self.broken = [
            row.limits
            for row in rows.values()
            if row.limits and not locked.lacking.isdisjoint(row.limiters)
        ]
        # If there are many partitions, only few tasks of each are read. If those do not suffice to
        # tell which task goes next, all that could be taken are read.
        want = max(self._want, 1)
        for depth in sorted({want, min(want, -(-want // max(1, len(rows))) + 1)}):
            counted = self._count(rows.values(), locked, depth)
            found = rows | {row.id: row for row in counted.freed}
            shares = shares_of(list(found.values()), locked, counted, own)
            served = [share for share in shares if self._may_serve(share, locked, own)]
            given = give(self._claimant, served, counted, want=self._want, free=self._free)
            for share in given:
                share.close_if_full()
            if not any(share.is_cut_off(depth) for share in given):
                break
        self.has_passed = pass_unknown(self._lanes, shares, self._behind, size=self._size)
        self.has_passed = self.has_passed or (
            len(given) < self._want and has_closed(self._lanes, shares, size=self._size)
        )
        return self._write(shares, given, locked, counted)

    def _count(self, rows: Collection[PartitionRow], locked: Locked, depth: int) -> Counted:
        """Count the leases that run, and read up to `depth` tasks of each partition."""
        rivals = {queue_name for queue_name, _ in self._lanes} if self._is_first else ()
        counted = self._dialect.count_limits(
            self._connection,
            locked,
            partitions=list(rows),
            unknown=self._unknown,
            want=max(self._want, 1),
            depth=depth,
            size=self._size,
            rivals=sorted(rivals),
        )
        self._counted_at = time.monotonic()
        return counted

    def _may_serve(self, share: Share, locked: Locked, own: Own) -> bool:
        """Return whether this worker may take a partition's tasks, with all limiters locked."""
        row = share.row
        number = len(row.limiters) + (row.queue_name in locked.of_queues)
        is_whole = len(share.limiters) == number and len(share.own) == len(own.get(row.lane, ()))
        is_served = (row.queue_name, row.lane) in self._lanes
        if row.queue_name in locked.paused or not is_served:
            return False
        self.is_left = self.is_left or not (is_whole or self._waits)
        return is_whole

    def _write(
        self, shares: list[Share], given: list[Share], locked: Locked, counted: Counted
    ) -> list[Claimed]:
        """Take the allotted tasks, and write the new state of partitions and limiters."""
        places: Counter[str] = Counter()
        tasks: list[tuple[str, tuple[str, ...]]] = []
        found_in: list[tuple[str | None, str]] = []
        for share in given:
            task = share.taken[places[share.row.id]]
            limiters = (*share.limiters, *share.own)
            tasks.append((task.id, tuple(limiter.id for limiter in limiters)))
            partition = None if share.row.limits is None else share.row.id
            found_in.append((partition, share.row.queue_name))
            places[share.row.id] += 1
        moves = []
        # How many partitions wait for each limiter that was noted.
        waiting: Counter[str | None] = Counter(row.waits_for for row in counted.freed)
        waiting.update(counted.skipped)
        for share in shares:
            move = move_of(share, counted)
            if is_to_write(share, move, locked):
                is_alone = waiting.get(move.waits_for) == 1
                moves.append(move._replace(is_news=not (is_alone and is_same(share.row, move))))
            # Without limits it belongs to a limited queue; its tasks are read only while it is
            # open.
            has_tasks = share.next is not None or share.row.limits is None
            if move.state == PartitionState.OPEN != share.row.state and has_tasks:
                self.opened.add((share.row.queue_name, share.row.lane))
        opens = [move.opens_at for move in moves if move.opens_at is not None]
        if opens:
            self.opens_at = self._counted_at + min(opens) - counted.now.timestamp()
        used = {each.id: each for share in given for each in (*share.limiters, *share.own)}
        again = with_places(shares, counted, size=self._size)
        if not (tasks or moves or again):
            return []
        taking = Taking(
            tasks=tasks,
            found_in=found_in,
            moves=moves,
            starts={
                id: limiter.tokens.stored()
                for id, limiter in used.items()
                if limiter.tokens is not None
            },
            again=again,
        )
        claimed = self._dialect.take_limited(
            self._connection,
            taking,
            counted,
            worker=self._claimant.name,
            lease_duration=self._lease_duration,
        )
        self.passing = passing_of(given, claimed)
        if len(claimed) < len(tasks):
            self._reopen(shares, {as_uuid(row.task_id).hex for row in claimed})
        self.is_left = self.is_left or bool(again)
        has_own_place = any(each.id in locked.noted for share in shares for each in share.own)
        # Tasks that this worker could still take need no other: it comes back for them.
        is_for_others = len(given) >= self._want or not self.opened <= set(self._lanes)
        # Tasks that must not be claimed ahead may have places and tokens left when no slot is free.
        is_left_over = len(given) >= min(self._free, self._want) and any(
            share.is_for_others for share in given
        )
        if has_own_place or is_left_over or (is_for_others and (self.opened or self.is_left)):
            self._dialect.wake_sleeping(self._connection, PLACES)
        return claimed

    def _reopen(self, shares: list[Share], got: set[str]) -> None:
        """Open partitions that were closed for tasks that another session has locked or ended."""
        lost, closed = reopened_of(shares, got)
        self._dialect.reopen_partitions(
            self._connection,
            [share.row for share in (*lost, *closed)],
            limiters=sorted({each.id for share in lost for each in (*share.limiters, *share.own)}),
        )
        self.is_left = True
