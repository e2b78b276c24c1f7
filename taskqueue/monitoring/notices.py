"""Conditions that need attention, for all faces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import F, Q

from taskqueue.core.alerts import KINDS, AlertKind
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.lost import lost_attempts
from taskqueue.engine.schedules.reading import OVERDUE
from taskqueue.models import Schedule
from taskqueue.monitoring.notice import ERROR, WARNING, Code, Notice
from taskqueue.monitoring.out_of_reach import out_of_reach, parked
from taskqueue.monitoring.read_models.attempt import RunningTask, running_now
from taskqueue.monitoring.read_models.pause import read_pauses
from taskqueue.monitoring.read_models.queue import ShownQueue, read_queues
from taskqueue.monitoring.read_models.worker import LOST, ShownWorker, living, read_workers
from taskqueue.monitoring.reading import now

__all__ = ["ERROR", "WARNING", "Notice", "notices"]

# Waiting time of a ready task, while a worker has a free slot, that is not normal.
STALLED_SECONDS = 60.0
# Seconds for which a lost worker is reported.
LATELY_SECONDS = 3600.0
# Failed attempts of a queue within a quarter of an hour that are not normal.
FAILURES_WORTH_NOTICE = 10
# Shares of failed attempts of a queue: of a warning, and of an error.
FAILING_SHARE, MOSTLY_FAILING_SHARE = 0.1, 0.5
# As the alert rules have it where they name no number of their own.
LATE_SECONDS = KINDS[AlertKind.QUEUE_LATENCY].threshold or 0.0
DEEP = int(KINDS[AlertKind.QUEUE_DEPTH].threshold or 0)
# Codes that come before others of their level.
FOREMOST = frozenset({"all_paused", "no_worker", "lost_holds", "lost_worker"})
# Paused definitions that are named.
MOST_PAUSES = 20
# Tasks that are read for each condition without an index.
LOOKED_AT = 1_000


def notices(
    *,
    queues: Sequence[ShownQueue] | None = None,
    workers: Sequence[ShownWorker] | None = None,
    running: Sequence[RunningTask] | None = None,
    most: int = LOOKED_AT,
) -> list[Notice]:
    """Return the notices, errors first, and of each level those of lost workers first.

    What has been read already spares its queries. Of tasks that are parked or out of reach at
    most so many are looked at.
    """
    workers = read_workers() if workers is None else workers
    queues = read_queues(workers=workers) if queues is None else queues
    running = running_now() if running is None else running
    pauses = list(_of_pauses())
    passing = {queue.name for queue in queues if queue.is_paused or not queue.is_served}
    conditions = [
        *pauses,
        *of_queues(
            queues, workers, are_paused=any(notice.code == "all_paused" for notice in pauses)
        ),
        *out_of_reach(workers, passing=passing, most=most),
        *parked(most=most),
        *resting_schedules(),
        *_of_overdue(),
        *of_workers(workers),
        *held_by_lost(most=most),
        *map(of_wedged, filter(attrgetter("is_wedged"), running)),
    ]
    return sorted(
        conditions, key=lambda notice: (notice.level != ERROR, notice.code not in FOREMOST)
    )


def _of_pauses() -> Iterator[Notice]:
    """Yield that everything is paused, and which definitions are."""
    for pause in read_pauses(limit=MOST_PAUSES):
        until = f"→ {pause.paused_until:%Y-%m-%d %H:%M} UTC" if pause.paused_until else ""
        said = ", ".join(filter(None, (pause.paused_by, until, pause.pause_reason)))
        detail = f" ({said})" if said else ""
        if pause.definition is None:
            yield Notice("all_paused", ERROR, detail=detail)
        else:
            yield Notice("definition_paused", WARNING, pause.definition, detail=detail)


def of_queues(
    queues: Sequence[ShownQueue], workers: Sequence[ShownWorker], *, are_paused: bool
) -> Iterator[Notice]:
    """Yield what is wrong with queues, and that no worker is running."""
    waiting = [queue for queue in queues if queue.waiting]
    if not living(workers):
        yield Notice(
            "no_worker",
            ERROR if waiting else WARNING,
            count=sum(queue.waiting for queue in waiting),
            is_capped=any(queue.is_waiting_capped for queue in waiting),
        )
    for queue in waiting:
        if queue.is_paused:
            yield _of_queue("paused_with_waiting", WARNING, queue)
        elif not queue.is_served:
            if living(workers):
                yield _of_queue("unserved_queue", ERROR, queue)
        elif not are_paused:
            if (queue.reachable_seconds or 0.0) > STALLED_SECONDS and _has_free_slot(
                queue, workers
            ):
                yield _of_queue("stalled", ERROR, queue)
            elif waits_long(queue, LATE_SECONDS):
                yield of_late(queue)
        if is_deep(queue, DEEP):
            yield of_deep(queue)
    for queue in queues:
        # Attempts are counted, not tasks: one that is retried for an hour has not failed yet.
        failed, total = queue.failed_recently, queue.attempts_recently
        if failed >= max(FAILURES_WORTH_NOTICE, FAILING_SHARE * total):
            level = ERROR if failed >= MOSTLY_FAILING_SHARE * total else WARNING
            yield Notice("failing", level, queue.name, count=failed, total=total)


def nobody_takes(workers: Sequence[ShownWorker]) -> bool:
    """Whether no worker claims what is ready: none is running, or all are quiet or draining."""
    return not any(worker.takes_tasks for worker in workers)


def waits_long(queue: ShownQueue, seconds: float) -> bool:
    """Whether a task that a running worker could claim waits for longer; not while it is paused."""
    return not queue.is_paused and (queue.reachable_seconds or 0.0) > seconds


def of_late(queue: ShownQueue) -> Notice:
    """Return the notice that its oldest task waits for long."""
    return replace(_of_queue("late_queue", WARNING, queue), seconds=queue.reachable_seconds)


def is_deep(queue: ShownQueue, number: int) -> bool:
    """Whether so many tasks wait, as far as they were counted."""
    return queue.waiting >= number


def of_deep(queue: ShownQueue) -> Notice:
    """Return the notice that very many tasks wait."""
    return _of_queue("deep_queue", WARNING, queue)


def of_wedged(attempt: RunningTask) -> Notice:
    """Return the notice of an attempt that seems to hang."""
    return Notice("wedged", WARNING, str(attempt.task_id))


def _has_free_slot(queue: ShownQueue, workers: Sequence[ShownWorker]) -> bool:
    """Whether a worker that serves the queue has a free slot."""
    return any(
        worker.takes_tasks and worker.serves(queue.name) and worker.busy < worker.slots
        for worker in workers
    )


def _of_queue(code: Code, level: str, queue: ShownQueue) -> Notice:
    count = queue.waiting_count
    return Notice(code, level, queue.name, count=count.value, is_capped=count.is_capped)


def of_workers(workers: Sequence[ShownWorker]) -> Iterator[Notice]:
    """Yield workers in trouble, and those that were lost within the last hour."""
    for worker in workers:
        if worker.is_alive and worker.trouble:
            yield Notice("worker_trouble", ERROR, worker.name, detail=worker.trouble)
        elif worker.state == LOST and worker.seen_seconds < LATELY_SECONDS:
            yield Notice("lost_worker", WARNING, worker.name)


def held_by_lost(*, most: int) -> Iterator[Notice]:
    """Yield one notice for all tasks of lost workers whose leases have not expired."""
    lost = lost_attempts(project_connection(), limit=most)
    if not lost:
        return
    moment = now()
    held = [attempt for attempt in lost if attempt.expires_at > moment]
    if held:
        longest = max(held, key=lambda attempt: attempt.expires_at)
        number = len({attempt.task_id for attempt in held})
        is_capped = len(lost) == most
        yield Notice("lost_holds", ERROR, str(longest.task_id), count=number, is_capped=is_capped)


MOST = 20
IN_TROUBLE = Q(paused_at=None) & ~Q(trouble="")
# As `Schedule.paused_itself`.
PAUSED_ITSELF = Q(
    paused_at__isnull=False, paused_by="", failures_in_row__gte=F("pause_after_failures")
)


def resting_schedules() -> Iterator[Notice]:
    """Yield the first schedules that paused themselves or could not be served."""
    rows: Any = Schedule.objects.using(database_alias()).filter(
        IN_TROUBLE | PAUSED_ITSELF, is_enabled=True, removed_at=None
    )
    columns = ("name", "paused_at", "failures_in_row", "trouble")
    for name, paused_at, failures, trouble in rows.order_by("id").values_list(*columns)[:MOST]:
        if paused_at is None:
            yield Notice("schedule_trouble", ERROR, name, detail=trouble)
        else:
            yield Notice("schedule_paused_itself", ERROR, name, count=failures)


class Overdue(NamedTuple):
    """A schedule that is due, and that no worker has served."""

    name: str
    seconds: float
    trouble: str


def overdue_schedules(*, most: int) -> list[Overdue]:
    """Return the schedules that are overdue, the first one first; paused ones miss nothing."""
    moment = now()
    rows: Any = Schedule.objects.using(database_alias()).filter(
        next_at__lt=moment - OVERDUE,
        next_at__isnull=False,
        is_enabled=True,
        removed_at__isnull=True,
        paused_at__isnull=True,
    )
    found = rows.order_by("next_at").values_list("name", "next_at", "trouble")[:most]
    return [
        Overdue(name, (moment - next_at).total_seconds(), trouble)
        for name, next_at, trouble in found
    ]


def _of_overdue() -> Iterator[Notice]:
    """Yield one notice for all schedules that are overdue."""
    overdue = overdue_schedules(most=MOST + 1)
    if overdue:
        first = overdue[0]
        yield Notice(
            "schedule_overdue",
            ERROR,
            first.name,
            count=min(MOST, len(overdue)),
            is_capped=len(overdue) > MOST,
            seconds=first.seconds,
        )
