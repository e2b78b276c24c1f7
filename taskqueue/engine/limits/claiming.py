"""Claim tasks under limits: exactly, without counters that can drift, and without deadlocks.

One transaction locks open partitions, skipping locked ones, then all their limiters in order. The
places in use are counted by a further statement, whose snapshot sees everything that was committed
by earlier holders of the locks. A place is a row that counts only while its lease is running, so
that it is given back when the lease ends, in whatever way.

Every statement that makes a task ready, or ends a lease that takes a place, writes a note in the
same transaction. A note is deleted only under the lock of the rows that it is about, by a statement
that sees the change. So a partition that is closed here because it lacks a task or a place is
examined again after every such change.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import uuid4

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.limit_rows import Place
from taskqueue.engine.limits.claimant import Claimant, Limited
from taskqueue.engine.limits.lanes import lane_from, served_lanes
from taskqueue.engine.limits.making import make_missing, restore_limiters
from taskqueue.engine.limits.turn import Turn

# The most transactions of one call. The first may only make partitions, or find places that other
# partitions wait for.
MOST_ROUNDS = 3


def claim_limited(
    connection: BaseDatabaseWrapper,
    claimant: Claimant,
    *,
    lanes: Collection[tuple[str, str]],
    want: int,
    free: int,
    unknown: Sequence[str],
    lease_duration: timedelta,
    is_first: bool = False,
    is_within: bool = False,
    waits: bool = True,
    behind: dict[tuple[str, str], Place] | None = None,
) -> Limited:
    """Lease up to `want` tasks of partitions, in transactions of its own.

    At most `free` of them are tasks that must not be claimed ahead of a free slot. `lanes` may have
    open partitions. `is_first`: take no task that comes after a better ordinary task of its queue.
    `is_within`: claim in the caller's transaction and only once, because a second claim would lock
    limiters out of order; work that needs more is left. `waits`: wait for limiters that other
    sessions have locked; otherwise skip the tasks under them. `behind`: places in lanes before
    which there was nothing for this worker; kept up to date.
    """
    result, first = Limited(claimed=[]), uuid4()
    behind = {} if behind is None else behind
    for _ in range(1 if is_within else MOST_ROUNDS):
        left = want - len(result.claimed)
        served = served_lanes(lanes, tags=claimant.tags, serving=claimant.serving)
        turn = Turn(
            connection,
            claimant,
            served,
            want=left,
            free=free - len(result.claimed),
            unknown=unknown,
            lease_duration=lease_duration,
            is_first=is_first,
            is_within=is_within,
            waits=waits,
            first=first,
            behind=behind,
        )
        result.claimed += turn.run()
        result.is_left, result.has_others = turn.is_left, turn.has_others
        result.opened |= turn.opened
        result.passing |= turn.passing
        result.opens_at = min(result.opens_at, turn.opens_at)
        is_short = len(result.claimed) < want
        # The limiters of a host or worker may have to be made first.
        left_out = is_within and any(lane_from(text).per for _, text in served)
        result.needs_another = bool(
            turn.missing
            or turn.broken
            or (is_short and (turn.opened or turn.has_passed or left_out))
        )
        result.missing, result.broken = turn.missing, turn.broken
        if is_within or not result.needs_another:
            break
        make(connection, result)
        lanes = {*lanes, *turn.opened}
    return result


def make(connection: BaseDatabaseWrapper, limited: Limited) -> None:
    """Make the partitions and limiters that a claim has missed, in transactions of its own."""
    make_missing(connection, limited.missing)
    restore_limiters(connection, limited.broken)
    limited.missing, limited.broken = [], []
