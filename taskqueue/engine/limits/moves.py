"""The tasks that a partition can give, and its state after a claim. No database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.engine.limit_rows import (
    Counted,
    Holder,
    LimiterRow,
    Locked,
    Move,
    PartitionRow,
    Place,
    ReadyTask,
)
from taskqueue.engine.limits.allotting import Share
from taskqueue.models.limit import PartitionState


def tasks_of(row: PartitionRow, counted: Counted) -> list[ReadyTask]:
    """Return the tasks that a partition may give: of a sequence one, if no other is unfinished."""
    tasks = counted.tasks.get(row.id, [])
    sequence = (row.limits or {}).get("sequence")
    if sequence is None:
        return tasks
    holder = counted.holders.get(row.id)
    if _is_halted(row, holder) or (holder is not None and holder.status not in FINISHED):
        tasks = [task for task in tasks if task.id == row.holder]
    # A task that this worker does not know holds up the others of its sequence.
    return [task for task in tasks[:1] if task.is_known]


def as_now(row: LimiterRow, counted: Counted) -> LimiterRow:
    """Return a limiter with the numbers of its limit that the count has seen.

    A change of the numbers writes a note, which the count deletes, so older numbers must not be
    used.
    """
    numbers = counted.bounds.get(row.limit_id)
    if numbers is None:
        return row
    concurrency, rate, seconds, smooth = numbers
    return row._replace(concurrency=concurrency, rate=rate, seconds=seconds, smooth=smooth)


def lift_idle(shares: list[Share], floors: Mapping[tuple[str, str], float]) -> None:
    """Let tenants that were idle start where the others are.

    Idle time earns no credit and costs nothing: such a tenant is at most one of its tasks ahead of
    the tenants that have work.
    """
    idle = [
        share for share in shares
        if share.tenant is not None and share.row.state == PartitionState.EMPTY
    ]  # fmt: skip
    first: dict[tuple[str, str], float] = {}
    for share in idle:
        lane = share.row.queue_name, share.row.lane
        first[lane] = max(share.vtime, first.get(lane, share.vtime))
    for share in idle:
        lane = share.row.queue_name, share.row.lane
        floor = floors.get(lane, first[lane])
        task = share.next
        step = 0.0 if task is None else task.cost / task.weight
        share.vtime = min(max(share.vtime, floor), floor + step)


def move_of(share: Share, counted: Counted) -> Move:
    """Return the new state of a partition."""
    row, holder = share.row, share.row.holder
    waits_for, opens_at = share.waits_for, share.opens_at
    is_closed = waits_for is not None or opens_at is not None
    state = PartitionState.WAITING if is_closed else PartitionState.OPEN
    sequence = (row.limits or {}).get("sequence")
    if sequence is not None:
        before = counted.holders.get(row.id)
        if share.taken:  # The end of the taken task writes a note.
            state, holder, waits_for, opens_at = (
                PartitionState.WAITING,
                share.taken[0].id,
                None,
                None,
            )
        elif _is_halted(row, before):
            state = PartitionState.HALTED
        elif before and before.status not in (TaskStatus.READY, *FINISHED) and not share.tasks:
            state = PartitionState.WAITING
    return Move(
        id=row.id,
        state=state,
        rank=None if share.tenant is None else share.vtime,
        waits_for=waits_for,
        opens_at=opens_at,
        holder=holder,
        is_news=True,
        stays=not share.taken and row.state in (PartitionState.OPEN, PartitionState.WAITING),
    )


def is_same(row: PartitionRow, move: Move) -> bool:
    """Return whether a partition that waits alone keeps waiting, so its rank does not matter."""
    return (row.state, row.waits_for, row.opens_at, row.holder, None) == (
        move.state, move.waits_for, move.opens_at, move.holder, move.rank
    )  # fmt: skip


def is_to_write(share: Share, move: Move, locked: Locked) -> bool:
    """Return whether a partition may have to be written."""
    row = share.row
    return (
        bool(share.taken)
        or not share.tasks
        or row.id in locked.noted
        or (move.state, move.waits_for, move.opens_at) != (row.state, row.waits_for, row.opens_at)
    )


def with_places(shares: list[Share], counted: Counted, *, size: int) -> list[str]:
    """Return limiters with places left, for which partitions may wait that were not locked."""
    waited = Counter((row.waits_for, row.queue_name, row.lane) for row in counted.freed)
    full = {share.waits_for for share in shares}
    more = [id for (id, *_), number in waited.items() if id and number >= size and id not in full]
    return sorted({*more, *counted.skipped})


def pass_unknown(
    lanes: Iterable[tuple[str, str]],
    shares: list[Share],
    behind: dict[tuple[str, str], Place],
    *,
    size: int,
) -> bool:
    """Let the next claim look behind partitions whose tasks are all unknown to this worker.

    Without this they would hide all other partitions of their lane from it. Return whether the next
    claim must do so.
    """
    has_passed = False
    for lane in lanes:
        own = [
            share for share in shares
            if (share.row.queue_name, share.row.lane) == lane
            and share.row.state == PartitionState.OPEN
        ]  # fmt: skip
        if len(own) < size:
            behind.pop(lane, None)
        elif not any(share.tasks for share in own):
            # Partitions that were noted may stand farther behind than the range that was asked for.
            places = sorted((share.row.place for share in own), key=_order_in_lane)
            behind[lane] = places[size - 1]
            has_passed = True
    return has_passed


def has_closed(lanes: Iterable[tuple[str, str]], shares: list[Share], *, size: int) -> bool:
    """Return whether open partitions of a lane were closed, behind which there may be others."""
    served = set(lanes)
    own = [
        share for share in shares
        if share.row.state == PartitionState.OPEN
        and (share.row.queue_name, share.row.lane) in served
    ]  # fmt: skip
    counts = Counter((share.row.queue_name, share.row.lane) for share in own)
    full = {lane for lane, number in counts.items() if number >= size}
    return any(
        (share.row.queue_name, share.row.lane) in full
        and (share.waits_for or share.opens_at or not share.tasks)
        for share in own
    )


def reopened_of(shares: list[Share], got: set[str]) -> tuple[list[Share], list[Share]]:
    """A sequence of which a task was taken stays closed."""
    lost = [share for share in shares if any(task.id not in got for task in share.taken)]
    # A sequence of which a task was taken stays closed.
    closed = [
        share
        for share in shares
        if not share.taken and (share.waits_for or share.opens_at) is not None
    ]
    closed += [
        share
        for share in shares
        if share.taken and share not in lost and "sequence" not in (share.row.limits or {})
    ]
    return lost, closed


def _order_in_lane(place: Place) -> tuple[int, float, str]:
    return -(place.priority or 0), place.rank or 0.0, place.id or ""


def _is_halted(row: PartitionRow, holder: Holder | None) -> bool:
    """Return whether a failed task, which may have been deleted since, holds up the others."""
    if holder is None:
        return row.state == PartitionState.HALTED
    return holder.halts and holder.status == TaskStatus.FAILED
