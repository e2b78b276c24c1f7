"""The partitions that a claim has read, and the tasks that each of them gives. No database."""

from __future__ import annotations

from collections import Counter

from taskqueue.engine.dialect import as_uuid
from taskqueue.engine.limit_rows import Counted, Locked, PartitionRow, ReadyTask
from taskqueue.engine.limits.allotting import Limiter, Share, allot
from taskqueue.engine.limits.claimant import Claimant
from taskqueue.engine.limits.making import Own
from taskqueue.engine.limits.moves import as_now, lift_idle, tasks_of
from taskqueue.engine.rows import Claimed


def shares_of(rows: list[PartitionRow], locked: Locked, counted: Counted, own: Own) -> list[Share]:
    """Return partitions with the tasks that they may give, and what is left of their limiters."""
    now = counted.now.timestamp()
    limiters = {
        row.id: Limiter.of(as_now(row, counted), running=counted.running.get(row.id, 0), now=now)
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
            tasks=tasks_of(row, counted),
        )
        if share.tenant is not None:
            share.vtime = row.rank
        shares.append(share)
    lift_idle(shares, counted.floors)
    return shares


def give(
    claimant: Claimant, shares: list[Share], counted: Counted, *, want: int, free: int
) -> list[Share]:
    """Give each queue its quota; other queues may have what a queue cannot use."""
    now = counted.now.timestamp()

    def goes(queue_name: str, task: ReadyTask) -> bool:
        rival = counted.rivals.get(queue_name)
        return rival is None or (-task.priority, task.run_after) <= (-rival[0], rival[1])

    given: list[Share] = []
    names = sorted({share.row.queue_name for share in shares if share.tasks})
    while names and len(given) < want:
        quotas = dict(claimant.quotas(claimant.serving(names), want - len(given)))
        own = [share for share in shares if share.row.queue_name in quotas]
        batch = list(allot(own, quotas, free=free - len(given), now=now, goes=goes))
        given += batch
        counts = Counter(share.row.queue_name for share in batch)
        short = {name for name, quota in quotas.items() if counts[name] < quota}
        if not short:
            break
        names = [name for name in names if name not in short]
    return given


def passing_of(given: list[Share], claimed: list[Claimed]) -> dict[int, str]:
    """Return the partitions of leases whose places may be handed to the next task, by lease."""
    partitions = {
        task.id: share.row.id for share in given if share.passes_on for task in share.taken
    }
    found = ((row.lease_id, partitions.get(as_uuid(row.task_id).hex)) for row in claimed)
    return {lease_id: partition for lease_id, partition in found if partition is not None}
