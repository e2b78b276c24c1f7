"""What a task waits for that several workers, or all of a queue, are to run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from taskqueue.core.states import LeaseStatus
from taskqueue.monitoring.why import codes
from taskqueue.monitoring.why.reason import Reason
from taskqueue.monitoring.why.staffing import listed
from taskqueue.monitoring.why.surroundings import Surroundings

LONG_AFTER = 9000
"""A year that stands for never."""


def is_shared(around: Surroundings) -> bool:
    """Whether it is such a task."""
    return around.task.workers > 1 or around.task.broadcast


def of_several(around: Surroundings) -> Iterator[Reason]:
    """How many have run it, and what keeps the next."""
    task = around.task
    if not is_shared(around):
        return
    if task.broadcast and task.workers == 0:
        yield Reason(code=codes.UNSEATED, subject=task.queue_name)
        return
    counts = {
        "wanted": task.workers, "done": task.successes, "running": task.running_leases,
        "open": task.open_slots,
    }  # fmt: skip
    yield Reason(code=codes.MORE_WORKERS, subject=task.queue_name, details=counts)
    if task.open_slots:
        yield from _of_the_next(around)


def _of_the_next(around: Surroundings) -> Iterator[Reason]:
    """What keeps the workers that have not run it yet."""
    task = around.task
    taken = {
        each.worker_id
        for each in around.leases
        if each.is_shared and each.status in (LeaseStatus.RUNNING, LeaseStatus.SUCCEEDED)
    }
    waiting = _waiting(around)
    takers = [each for each in around.serving if each.takes_tasks and each.name not in taken]
    if task.worker_names is not None:
        takers = [each for each in takers if each.name in task.worker_names]
        living = {each.name for each in around.serving}
        absent = [name for name in task.worker_names if name not in living and name not in taken]
        if absent and living & set(task.worker_names):  # Else that none lives is told apart.
            yield Reason(code=codes.WORKERS_ABSENT, subject=listed(map(str, absent)))
    elif len(takers) < task.open_slots and around.serving:
        yield Reason(
            code=codes.TOO_FEW_WORKERS,
            subject=task.queue_name,
            details={"open": task.open_slots, "able": len(takers)},
        )
    for each in takers:
        if each.name in waiting:
            yield Reason(code=codes.WORKER_WAITS, subject=each.name, moment=waiting[each.name])


def _waiting(around: Surroundings) -> dict[str, datetime]:
    """Until when workers that have tried it let others go first."""
    return {
        each.worker_id: each.retry_at
        for each in around.leases
        if each.retry_at is not None
        and each.retry_at > around.now
        and each.retry_at.year < LONG_AFTER
    }
