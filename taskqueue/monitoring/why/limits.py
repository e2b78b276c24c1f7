"""Why a limited task waits: places, tokens, its sequence, its tenant's turn, tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from taskqueue.core.rates import tokens_of
from taskqueue.core.states import FINISHED, WAITING, TaskStatus
from taskqueue.declarations.placement import lane_of, limiter_of
from taskqueue.declarations.rates import rate_text
from taskqueue.engine.connections import database_alias
from taskqueue.models import Limiter, Partition, Slot, Task
from taskqueue.models.limit import PartitionState
from taskqueue.models.task import Route
from taskqueue.monitoring.counts import CAP
from taskqueue.monitoring.read_models.limit import concurrency_of_row, rate_of_row
from taskqueue.monitoring.searching.streams import IS_LIMITED, literal
from taskqueue.monitoring.why.reasons import Reason, because, listed
from taskqueue.monitoring.why.surroundings import Surroundings

# The most workers, or hosts, whose own limits are read.
MOST_OWN = 100
# The most tasks holding a limiter that are read, oldest first, to find the first end.
MOST_HOLDERS = 200


def without_tags(around: Surroundings) -> Iterator[Reason]:
    """Yield that no running worker of its queue has the required tags."""
    tags = (around.task.limits or {}).get("tags", ())
    if tags and around.serving and not any(set(tags) <= set(each.tags) for each in around.serving):
        yield because("tags_missing", listed(list(tags)), queue=around.task.queue_name)


def why_limited(around: Surroundings) -> list[Reason]:
    """Return what keeps a due task waiting; empty if limits do not keep it from being claimed."""
    task = around.task
    reasons = list(_of_queue(around))
    if task.limits is None or task.partition is None:
        return reasons
    partition = Partition.objects.using(database_alias()).filter(id=task.partition).first()
    if "sequence" in task.limits:
        reasons += _of_sequence(around, partition)
    for limit in task.limits.get("limits", ()):
        reasons += _of_limit(around, limit)
    if reasons:
        return [*reasons, *_ahead(task)]
    return [*_ahead(task), *_of_tenant(task, partition)]


def _of_queue(around: Surroundings) -> Iterator[Reason]:
    queue = around.queue
    if queue is None or queue.limiter_id is None:
        return
    limiter = _limiter(queue.limiter_id)
    if limiter is not None:
        yield from _closed(around, limiter, "queue_full", queue.name, cost=1)


def _of_limit(around: Surroundings, limit: Mapping[str, Any]) -> Iterator[Reason]:
    cost = (around.task.limits or {}).get("cost", 1)
    if limit["per"] == "key":
        limiter = _limiter(limiter_of(limit["name"], limit["key"]))
        if limiter is not None:
            yield from _closed(around, limiter, "limit_full", limit["name"], cost=cost)
        return
    # For each host or worker that takes its tasks: while one has a place, the limit is not full.
    keys = {each.host if limit["per"] == "host" else each.name for each in around.takers}
    full: list[Reason] = []
    for key in sorted(keys)[:MOST_OWN]:
        limiter = _limiter(limiter_of(limit["name"], key))
        own = limiter and list(_closed(around, limiter, "own_full", limit["name"], cost=cost))
        if not own:
            return
        full += own
    yield from full


def _limiter(id: UUID) -> Any:
    rows = Limiter.objects.using(database_alias()).select_related("limit")
    return rows.filter(id=id).first()


def _closed(
    around: Surroundings, limiter: Any, code: Any, name: str, *, cost: int
) -> Iterator[Reason]:
    """Yield that a limiter has no place or too few tokens, and when it will."""
    most, (rate, seconds) = concurrency_of_row(limiter.limit), rate_of_row(limiter.limit)
    if most == 0:
        yield because("limit_zero", name)
    elif most is not None:
        slots = Slot.objects.using(database_alias()).filter(
            limiter_id=limiter.id, lease__finished_at=None
        )
        number = slots.count()
        if number >= most:
            oldest = slots.order_by("lease__claimed_at").values_list(
                "lease__task_id", "lease__claimed_at"
            )
            task_id, since = oldest.first() or (None, None)
            yield because(
                code, name, since, most=most, number=number, task=str(task_id) if task_id else None,
                key=limiter.key,
            )  # fmt: skip
            yield from _first_end(slots, name)
    if rate is not None:
        now = around.now.timestamp()
        tokens = tokens_of(
            rate, seconds, smooth=limiter.limit.smooth, stored=limiter.starts, now=now
        )
        if tokens.left(now) < cost:
            at = datetime.fromtimestamp(tokens.ready_at(cost, now), UTC)
            yield because("rate_used", name, at, rate=rate_text(rate, seconds), key=limiter.key)


def _first_end(slots: QuerySet[Slot], name: str) -> Iterator[Reason]:
    """Yield which of the tasks that hold a limiter reaches its timeout or deadline first.

    For a task that has not started, the end of the timeout is not known. A body that is stopped at
    its limit ends a little later.
    """
    columns = ("task_id", "started_at", "task__options", "task__deadline_at")
    rows = slots.order_by("lease__claimed_at").values_list(*(f"lease__{each}" for each in columns))
    ends = [
        (moment, str(task_id))
        for task_id, started_at, options, deadline_at in rows[:MOST_HOLDERS]
        for moment in (_timeout_of(started_at, options), deadline_at)
        if moment is not None
    ]
    if ends:
        moment, task = min(ends)
        yield because("holder_ends", name, moment, task=task)


def _timeout_of(started_at: datetime | None, options: Mapping[str, Any]) -> datetime | None:
    seconds = options.get("timeout")
    if started_at is None or seconds is None or options.get("timeout_from") == "progress":
        return None
    return started_at + timedelta(seconds=seconds)


def _of_sequence(around: Surroundings, partition: Partition | None) -> Iterator[Reason]:
    """Yield what its sequence waits for."""
    task = around.task
    if partition is None or partition.holder is None or partition.holder == task.id:
        return
    holder = Task.objects.using(database_alias()).filter(id=partition.holder).first()
    if holder is None:
        return
    shown = str(holder.id)
    if partition.state == PartitionState.HALTED or (
        holder.status == TaskStatus.FAILED and (task.limits or {})["sequence"]["halts"]
    ):
        yield because("sequence_halted", shown, holder.finished_at)
    elif holder.status in WAITING:
        yield because("sequence_waits", shown, holder.run_after, status=holder.status)
    elif holder.status not in FINISHED:
        yield because("sequence_runs", shown, status=holder.status)


def _ahead(task: Task) -> Iterator[Reason]:
    """Yield how many tasks of its partition are ahead of it, by the index of their claim."""
    if task.route != Route.PARTITION or task.status != TaskStatus.READY:
        return
    same: Any = Task.objects.using(database_alias()).filter(
        literal(IS_LIMITED), partition=task.partition
    )
    level = same.filter(priority=task.priority)
    parts = [
        same.filter(priority__gt=task.priority),
        level.filter(run_after__lt=task.run_after),
        level.filter(run_after=task.run_after, id__lt=task.id),
    ]
    number = sum(part.order_by("-priority", "run_after", "id")[: CAP + 1].count() for part in parts)
    if not number:
        return
    is_sequence = "sequence" in (task.limits or {})
    code: Any = "behind_in_sequence" if is_sequence else "behind_in_limits"
    yield because(code, number=f"{CAP:,}+" if number > CAP else number)


def _of_tenant(task: Task, partition: Partition | None) -> Iterator[Reason]:
    """Yield how many tenants have their turn before its own."""
    if task.limits is None or "tenant" not in task.limits or partition is None:
        return
    before = Partition.objects.using(database_alias()).filter(
        queue_name=task.queue_name, lane=lane_of(task.limits), state=PartitionState.OPEN,
        rank__lt=partition.rank,
    )  # fmt: skip
    number = before.order_by("rank")[: CAP + 1].count()
    if number:
        yield because("tenants_ahead", task.queue_name, number=min(number, CAP))
