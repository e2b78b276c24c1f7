"""Claiming under limits: exact, without a counter to give back, and without waiting in a circle.

One transaction locks open partitions, skipping locked ones, then all their limiters in order. What
takes a place is counted in a further statement: its snapshot sees whatever was committed by those
who held the locks before. A place is taken by a row that counts only while its lease runs, so that
the end of a lease, in whatever way, is what gives it back.

Whoever makes a task ready, or ends a lease that takes a place, writes a note in the same
transaction. A note is deleted only under the lock of what it tells of, by a statement that sees
what it tells. So a partition that is closed here for want of a task or of a place is looked at
again after every one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.placement import limiter_of
from taskqueue.engine.connections import orm_transaction, transaction
from taskqueue.engine.dialect import as_uuid, dialect_for, select
from taskqueue.engine.limits.allotting import Limiter, Share, allot
from taskqueue.engine.limits.lanes import lane_from, served_lanes
from taskqueue.engine.limits.making import make_limiters, make_missing, restore_limiters
from taskqueue.engine.notify import ANYWHERE
from taskqueue.engine.rows import (
    Claimed,
    Counted,
    Holder,
    LimiterRow,
    Locked,
    Move,
    PartitionRow,
    Place,
    ReadyTask,
    Taking,
)
from taskqueue.engine.statement import Statement
from taskqueue.models import Limiter as LimiterModel
from taskqueue.models.limit import PartitionState

# Subjects of notes of one transaction, and partitions of a lane beyond those that are wanted.
MOST_NOTED, SPARE = 64, 8
# Transactions of one call: the first may make partitions, or find places that others wait for.
MOST_ROUNDS = 3

# Of those that neither a partition nor a limiter has as its id.
_UNKNOWN = """
SELECT asked.{value}
FROM {asked} AS asked {columns}
WHERE NOT EXISTS (SELECT 1 FROM taskqueue_partition WHERE id = asked.{value})
    AND NOT EXISTS (SELECT 1 FROM taskqueue_limiter WHERE id = asked.{value})
"""
UNKNOWN_SUBJECTS = Statement(
    postgresql=_UNKNOWN.format(
        asked="unnest(%(subjects)s::uuid[])", columns="(value)", value="value"
    ),
    sqlite=_UNKNOWN.format(asked="json_each(%(subjects)s)", columns="", value="value"),
)

# Whether a task of a queue may be taken now.
Goes = Callable[[str, ReadyTask], bool]
# The limiters of the worker that claims and of its host, by lane.
Own = Mapping[str, tuple[str, ...]]


def always(queue_name: str, task: ReadyTask) -> bool:
    """Let every task go."""
    return True


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """The worker that claims."""

    name: str
    host: str
    tags: frozenset[str]
    # Of some queues, those that it serves; and how many tasks to take from each of them.
    serving: Callable[[list[str]], list[str]]
    quotas: Callable[[list[str], int], list[tuple[str, int]]]

    def own_key(self, per: str) -> str:
        """Return the key of its limiter of a limit that is counted for hosts or workers."""
        return self.host if per == "host" else self.name


@dataclass(kw_only=True)
class Limited:
    """The result of a claim under limits."""

    claimed: list[Claimed]
    # Whether something is left that could be taken, now or as soon as others let go of it.
    is_left: bool = False


def claim_limited(
    connection: BaseDatabaseWrapper,
    claimant: Claimant,
    *,
    lanes: Collection[tuple[str, str]],
    want: int,
    free: int,
    unknown: Sequence[str],
    lease_duration: timedelta,
    goes: Goes = always,
    is_within: bool = False,
    behind: dict[tuple[str, str], Place] | None = None,
) -> Limited:
    """Lease up to `want` tasks of partitions, in transactions of its own.

    Of those that must not be claimed ahead of a free slot only up to `free`. `lanes` are those with
    open partitions; `goes` says whether a task may go before ordinary ones. `is_within`: in the
    caller's transaction, once, for a second time it would lock limiters out of their order; what
    needs more is left. `behind`: places in lanes before which nothing was for this worker; kept up
    to date.
    """
    result = Limited(claimed=[])
    for _ in range(1 if is_within else MOST_ROUNDS):
        left = want - len(result.claimed)
        served = served_lanes(lanes, tags=claimant.tags, serving=claimant.serving)
        turn = _Turn(
            connection,
            claimant,
            served,
            want=left,
            free=free - len(result.claimed),
            unknown=unknown,
            lease_duration=lease_duration,
            is_within=is_within,
            behind={} if behind is None else behind,
        )
        result.claimed += turn.run(goes)
        result.is_left = turn.is_left
        if is_within:
            result.is_left = result.is_left or bool(turn.missing or turn.broken or turn.opened)
        elif turn.missing or turn.broken:
            make_missing(connection, turn.missing)
            restore_limiters(connection, turn.broken)
        elif not (turn.opened or turn.has_passed) or left <= 0:
            break
        lanes = {*lanes, *turn.opened}
    return result


class _Turn:
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
        is_within: bool,
        behind: dict[tuple[str, str], Place],
    ) -> None:
        self._connection = connection
        self._is_within = is_within
        self._dialect = dialect_for(connection)
        self._claimant = claimant
        self._lanes = sorted(lanes)
        self._want, self._free = want, free
        # Partitions of a lane, or of those that wait for a limiter, that are locked at most.
        self._size = want + SPARE
        self._unknown = unknown
        self._lease_duration = lease_duration
        self._behind = behind
        # Whether the first partitions of a lane were nothing for this worker, and others follow.
        self.has_passed = False
        # Subjects of notes of which there is no row.
        self.missing: list[str] = []
        # What limits partitions of which a limiter was pruned meanwhile.
        self.broken: list[Mapping[str, Any]] = []
        # Whether something could be taken as soon as others let go of it.
        self.is_left = False
        # The lanes of partitions that were opened here and have tasks left.
        self.opened: set[tuple[str, str]] = set()

    def run(self, goes: Goes) -> list[Claimed]:
        """Lock, count, allot and take; the tasks that were leased."""
        own = self._own_limiters()
        claimed: list[Claimed] = []
        with nullcontext() if self._is_within else transaction(self._connection):
            locked = self._dialect.lock_limits(
                self._connection,
                lanes=self._lanes,
                own=[id for ids in own.values() for id in ids],
                size=self._size,
                most=MOST_NOTED,
                behind=self._behind,
            )
            rows = {row.id: row for row in locked.partitions}
            unseen = locked.noted - {*rows, *(limiter.id for limiter in locked.limiters)}
            if rows or locked.noted - unseen:
                claimed = self._take(rows, locked, own, goes)
        if unseen:
            found = select(self._connection, UNKNOWN_SUBJECTS, subjects=sorted(unseen))
            self.missing = [as_uuid(row[0]).hex for row in found]
            self.is_left = self.is_left or len(self.missing) < len(unseen)
        return claimed

    def _take(
        self,
        rows: dict[str, PartitionRow],
        locked: Locked,
        own: Own,
        goes: Goes,
    ) -> list[Claimed]:
        counted = self._dialect.count_limits(
            self._connection,
            locked,
            partitions=list(rows.values()),
            unknown=self._unknown,
            want=max(self._want, 1),
            size=self._size,
        )
        found = {limiter.id for limiter in locked.limiters}
        self.broken = [
            row.limits for row in rows.values() if row.limits and not found.issuperset(row.limiters)
        ]
        rows |= {row.id: row for row in counted.freed}
        shares = self._shares(list(rows.values()), locked, counted, own)
        self._pass(shares)
        served = [share for share in shares if self._may_serve(share, locked, own)]
        given = self._allot(served, counted.now.timestamp(), goes)
        return self._write(shares, given, locked, counted)

    def _pass(self, shares: list[Share]) -> None:
        """Let the next claim look behind partitions that hold only tasks unknown to this worker.

        Without it they would hide all others of their lane from it.
        """
        for lane in self._lanes:
            own = [
                share
                for share in shares
                if (share.row.queue_name, share.row.lane) == lane
                and share.row.state == PartitionState.OPEN
            ]
            if len(own) < self._size or any(share.tasks for share in own):
                if len(own) < self._size:
                    self._behind.pop(lane, None)
                continue
            places = [share.row.place for share in own]
            self._behind[lane] = max(places, key=_order_in_lane)
            self.has_passed = True

    def _allot(self, shares: list[Share], now: float, goes: Goes) -> list[Share]:
        """Give each queue its quota; what one cannot give, the others may."""
        given: list[Share] = []
        names = sorted({share.row.queue_name for share in shares if share.tasks})
        while names and len(given) < self._want:
            quotas = dict(
                self._claimant.quotas(self._claimant.serving(names), self._want - len(given))
            )
            own = [share for share in shares if share.row.queue_name in quotas]
            batch = list(allot(own, quotas, free=self._free - len(given), now=now, goes=goes))
            given += batch
            counts = Counter(share.row.queue_name for share in batch)
            short = {name for name, quota in quotas.items() if counts[name] < quota}
            if not short:
                break
            names = [name for name in names if name not in short]
        return given

    def _own_limiters(self) -> Own:
        """Return this worker's and its host's limiters, by lane; they are made where missing."""
        found: dict[str, tuple[str, ...]] = {}
        wanted: dict[UUID, tuple[str, str]] = {}
        if self._is_within:  # They may have to be made, in another transaction.
            self._lanes = [pair for pair in self._lanes if not lane_from(pair[1]).per]
        for text in {text for _, text in self._lanes}:
            pairs = [(name, self._claimant.own_key(per)) for name, per in lane_from(text).per]
            ids = [limiter_of(*pair) for pair in pairs]
            wanted |= zip(ids, pairs, strict=True)
            found[text] = tuple(id.hex for id in ids)
        rows = LimiterModel.objects.using(self._connection.alias).filter(id__in=list(wanted))
        if wanted:
            with orm_transaction(self._connection):
                if rows.count() < len(wanted):
                    make_limiters(self._connection, wanted.values())
        return found

    def _shares(
        self, rows: list[PartitionRow], locked: Locked, counted: Counted, own: Own
    ) -> list[Share]:
        now = counted.now.timestamp()
        limiters = {
            row.id: Limiter.of(
                _as_now(row, counted), running=counted.running.get(row.id, 0), now=now
            )
            for row in locked.limiters
        }
        shares = []
        for row in rows:
            of_queue = locked.of_queues.get(row.queue_name)
            wanted = (*row.limiters, *([of_queue] if of_queue else []))
            share = Share(
                row=row,
                limiters=tuple(limiters[id] for id in wanted if id in limiters),
                own=tuple(limiters[id] for id in own.get(row.lane, ()) if id in limiters),
                tasks=_tasks_of(row, counted),
            )
            if share.tenant is not None:
                share.vtime = row.rank
            shares.append(share)
        _lift(shares, counted.floors)
        return shares

    def _may_serve(self, share: Share, locked: Locked, own: Own) -> bool:
        """Return whether this worker may take of a partition, all of whose limiters are locked."""
        row = share.row
        number = len(row.limiters) + (row.queue_name in locked.of_queues)
        is_whole = len(share.limiters) == number and len(share.own) == len(own.get(row.lane, ()))
        is_served = (row.queue_name, row.lane) in self._lanes
        return is_whole and is_served and row.queue_name not in locked.paused

    def _write(
        self, shares: list[Share], given: list[Share], locked: Locked, counted: Counted
    ) -> list[Claimed]:
        """Take what was allotted, and write how partitions and limiters are left."""
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
        for share in shares:
            move = _move(share, counted)
            if _is_news(share, move, locked):
                moves.append(move)
            # Of a limited queue the tasks are read once its partition is open.
            has_tasks = share.next is not None or share.row.limits is None
            if move.state == PartitionState.OPEN != share.row.state and has_tasks:
                self.opened.add((share.row.queue_name, share.row.lane))
        used = {each.id: each for share in given for each in (*share.limiters, *share.own)}
        again = self._with_places(shares, counted)
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
        if len(claimed) < len(tasks):
            self._reopen(shares, {as_uuid(row.task_id).hex for row in claimed})
        self.is_left = self.is_left or bool(again)
        has_own_place = any(each.id in locked.noted for share in shares for each in share.own)
        if self.opened or self.is_left or has_own_place:
            self._dialect.wake_sleeping(self._connection, ANYWHERE)
        return claimed

    def _reopen(self, shares: list[Share], got: set[str]) -> None:
        """Open what was closed for the sake of tasks that somebody holds, or has ended."""
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
        self._dialect.reopen_partitions(
            self._connection,
            [share.row for share in (*lost, *closed)],
            limiters=sorted({each.id for share in lost for each in (*share.limiters, *share.own)}),
        )
        self.is_left = True

    def _with_places(self, shares: list[Share], counted: Counted) -> list[str]:
        """Return limiters with places left, for which partitions may wait that were not locked."""
        waited = Counter((row.waits_for, row.queue_name, row.lane) for row in counted.freed)
        full = {share.waits_for for share in shares}
        more = [
            id
            for (id, *_), number in waited.items()
            if id and number >= self._size and id not in full
        ]
        return sorted({*more, *counted.skipped})


def _order_in_lane(place: Place) -> tuple[int, float, str]:
    return -(place.priority or 0), place.rank or 0.0, place.id or ""


def _tasks_of(row: PartitionRow, counted: Counted) -> list[ReadyTask]:
    """Return what may be taken of a partition: of a sequence one, unless one is not over."""
    tasks = counted.tasks.get(row.id, [])
    sequence = (row.limits or {}).get("sequence")
    if sequence is None:
        return tasks
    holder = counted.holders.get(row.id)
    if _is_halted(row, holder) or (holder is not None and holder.status not in FINISHED):
        tasks = [task for task in tasks if task.id == row.holder]
    # One that this worker does not know holds up the others.
    return [task for task in tasks[:1] if task.is_known]


def _as_now(row: LimiterRow, counted: Counted) -> LimiterRow:
    """Return a limiter with the numbers of its limit that the count saw.

    Whoever changes them writes a note, which the count forgets: it must not go by older ones.
    """
    numbers = counted.bounds.get(row.limit_id)
    if numbers is None:
        return row
    concurrency, rate, seconds, smooth = numbers
    return row._replace(concurrency=concurrency, rate=rate, seconds=seconds, smooth=smooth)


def _lift(shares: list[Share], floors: Mapping[tuple[str, str], float]) -> None:
    """Have tenants that were idle begin where the others are.

    To have been idle earns no credit, and costs none: one is at most one task of its own ahead of
    those that have work.
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


def _move(share: Share, counted: Counted) -> Move:
    """Return how a partition is left."""
    row, holder = share.row, share.row.holder
    waits_for, opens_at = share.waits_for, share.opens_at
    is_closed = waits_for is not None or opens_at is not None
    state = PartitionState.WAITING if is_closed else PartitionState.OPEN
    sequence = (row.limits or {}).get("sequence")
    if sequence is not None:
        before = counted.holders.get(row.id)
        if share.taken:  # A note tells of its end.
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
        stays=not share.taken and row.state in (PartitionState.OPEN, PartitionState.WAITING),
    )


def _is_news(share: Share, move: Move, locked: Locked) -> bool:
    """Return whether a partition is to be written."""
    row = share.row
    return (
        bool(share.taken)
        or not share.tasks
        or row.id in locked.noted
        or (move.state, move.waits_for, move.opens_at) != (row.state, row.waits_for, row.opens_at)
    )


def _is_halted(row: PartitionRow, holder: Holder | None) -> bool:
    """Return whether a failed task holds up the others; also one that was deleted since."""
    if holder is None:
        return row.state == PartitionState.HALTED
    return holder.halts and holder.status == TaskStatus.FAILED
