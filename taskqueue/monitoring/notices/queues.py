"""Notices of queues that no worker serves, or that stall, fall behind or fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from taskqueue.core.alerts import KINDS, AlertKind
from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.notice_texts import Code
from taskqueue.monitoring.notices.situation import Situation
from taskqueue.monitoring.read_models.queue import ShownQueue
from taskqueue.monitoring.read_models.worker import ShownWorker, living

# An unusual waiting time of a ready task while a worker has a free slot.
STALLED_SECONDS = 60.0
# An unusual number of failed attempts of a queue within a quarter of an hour.
FAILURES_WORTH_NOTICE = 10
# The shares of a queue's failed attempts for a warning and for an error.
FAILING_SHARE, MOSTLY_FAILING_SHARE = 0.1, 0.5
# The same as in alert rules that set no number.
LATE_SECONDS = KINDS[AlertKind.QUEUE_LATENCY].threshold or 0.0
DEEP = int(KINDS[AlertKind.QUEUE_DEPTH].threshold or 0)
# A backlog grows if this many more tasks came within a quarter of an hour than attempts ended, and
# this many times as many.
LEAST_GROWTH, GROWTH = 100, 1.2
# The queues for which this is counted, the deepest first.
MOST_GROWING = 10


def of_queues(situation: Situation) -> Iterator[Notice]:
    """Yield problems of queues, and that no worker is running."""
    waiting = [queue for queue in situation.queues if queue.waiting]
    alive = living(situation.workers)
    if not alive:
        yield Notice(
            "no_worker",
            ERROR if waiting else WARNING,
            count=sum(queue.waiting for queue in waiting),
            is_capped=any(queue.is_waiting_capped for queue in waiting),
            since=max((worker.seen_at for worker in situation.workers), default=None),
        )
    are_paused = everything_is_paused(situation)
    for queue in waiting:
        since = situation.ago(queue.oldest_seconds or 0.0)
        if queue.is_paused:
            paused = _of_queue("paused_with_waiting", WARNING, queue)
            yield replace(paused, since=queue.paused_at)
        elif not queue.is_served:
            if alive:
                yield replace(_of_queue("unserved_queue", ERROR, queue), since=since)
        elif not are_paused:
            if _is_stalled(queue, situation.workers):
                yield replace(of_stalled(queue), since=since)
            elif waits_long(queue, LATE_SECONDS):
                yield of_late(queue)
        if is_deep(queue, DEEP):
            yield of_deep(queue)
    for queue in situation.queues:
        # Attempts are counted, not tasks: a task that is retried for an hour has not failed yet.
        failed, total = queue.failed_recently, queue.attempts_recently
        if failed >= max(FAILURES_WORTH_NOTICE, FAILING_SHARE * total):
            level = ERROR if failed >= MOSTLY_FAILING_SHARE * total else WARNING
            yield Notice("failing", level, queue.name, count=failed, total=total)


def growing(situation: Situation) -> Iterator[Notice]:
    """Yield the backlogs that grow, in whatever order tasks are taken.

    Tasks that wait now and came within a quarter of an hour certainly came. If they are more than
    the attempts that ended meanwhile, the backlog has grown. A batch that was enqueued at once does
    not count after five minutes, because nothing more comes.
    """
    served = [
        queue
        for queue in situation.queues
        if queue.waiting >= LEAST_GROWTH and queue.is_served and queue.reachable_seconds is not None
    ]
    deepest = sorted(served, key=lambda queue: -queue.waiting)[:MOST_GROWING]
    deepest = [queue for queue in deepest if not queue.is_paused]
    came = situation.came([queue.name for queue in deepest])
    for queue in deepest:
        ended = queue.attempts_recently
        within, lately = came.get(queue.name, (0, 0))
        grows = within >= max(ended + LEAST_GROWTH, GROWTH * ended)
        if grows and lately > ended / 3 and lately >= LEAST_GROWTH / 3:
            growing_one = _of_queue("growing_backlog", WARNING, queue)
            yield replace(growing_one, total=within, detail=f"{ended:,}")


def nobody_takes(workers: Sequence[ShownWorker]) -> bool:
    """Return whether no worker claims tasks: none is running, or all are quiet or draining."""
    return not any(worker.takes_tasks for worker in workers)


def everything_is_paused(situation: Situation) -> bool:
    """Return whether somebody has paused everything, so that no task is claimed."""
    return any(not pause.name for pause in situation.standing.pauses)


def waits_long(queue: ShownQueue, seconds: float) -> bool:
    """Return whether a claimable task has waited longer; False while the queue is paused."""
    return not queue.is_paused and (queue.reachable_seconds or 0.0) > seconds


def of_late(queue: ShownQueue) -> Notice:
    """Return the notice that its oldest task has been waiting for long."""
    return replace(_of_queue("late_queue", WARNING, queue), seconds=queue.reachable_seconds)


def of_stalled(queue: ShownQueue) -> Notice:
    """Return the notice that none of its tasks starts although a slot is free."""
    return _of_queue("stalled", ERROR, queue)


def is_deep(queue: ShownQueue, number: int) -> bool:
    """Return whether at least that many tasks wait, as far as they were counted."""
    return queue.waiting >= number


def of_deep(queue: ShownQueue) -> Notice:
    """Return the notice that very many tasks wait."""
    return _of_queue("deep_queue", WARNING, queue)


def _is_stalled(queue: ShownQueue, workers: Sequence[ShownWorker]) -> bool:
    """Return whether a task has waited for long although a worker has a free slot for it."""
    waits = (queue.reachable_seconds or 0.0) > STALLED_SECONDS
    return waits and has_free_slot(queue, workers)


def has_free_slot(queue: ShownQueue, workers: Sequence[ShownWorker]) -> bool:
    """Whether a worker that serves the queue has a free slot."""
    return any(
        worker.takes_tasks and worker.serves(queue.name) and worker.busy < worker.slots
        for worker in workers
    )


def _of_queue(code: Code, level: str, queue: ShownQueue) -> Notice:
    count = queue.waiting_count
    return Notice(code, level, queue.name, count=count.value, is_capped=count.is_capped)
