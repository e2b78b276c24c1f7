"""Notices about workers and their attempts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.notices.situation import Situation
from taskqueue.monitoring.read_models.attempt import RunningTask
from taskqueue.monitoring.read_models.worker import LOST

# How many seconds a lost worker is reported.
LATELY_SECONDS = 3600.0
# An attempt is long if it exceeds this many times its name's p95, and a minute. If fewer runs are
# known than `figures.ENOUGH`, it is long after an hour.
LONG, LEAST_SECONDS, UNKNOWN_SECONDS = 5.0, 60.0, 3600.0
# The most attempts that are reported.
MOST = 20


def of_workers(situation: Situation) -> Iterator[Notice]:
    """Yield workers in trouble, and those that were lost within the last hour."""
    for worker in situation.workers:
        if worker.is_alive and worker.trouble:
            yield Notice("worker_trouble", ERROR, worker.name, detail=worker.trouble)
        elif worker.state == LOST and worker.seen_seconds < LATELY_SECONDS:
            yield Notice("lost_worker", WARNING, worker.name, since=worker.seen_at)


def held_by_lost(situation: Situation) -> Iterator[Notice]:
    """Yield one notice for all tasks of lost workers whose leases have not expired."""
    lost = situation.lost
    held = [attempt for attempt in lost if attempt.expires_at > situation.now]
    if held:
        longest = max(held, key=lambda attempt: attempt.expires_at)
        yield Notice(
            "lost_holds",
            ERROR,
            str(longest.task_id),
            count=len({attempt.task_id for attempt in held}),
            is_capped=len(lost) == situation.looked_at,
            since=min((each.seen_at for each in held if each.seen_at is not None), default=None),
        )


def wedged(situation: Situation) -> Iterator[Notice]:
    """Yield the first attempts that seem to hang."""
    return map(of_wedged, islice((each for each in situation.running if each.is_wedged), MOST))


def of_wedged(attempt: RunningTask) -> Notice:
    """Return the notice of an attempt that seems to hang."""
    return Notice("wedged", WARNING, str(attempt.task_id), since=attempt.wedged_at)


def long_runs(situation: Situation) -> Iterator[Notice]:
    """Yield attempts that run for far longer than most of their name, the longest first."""
    suspects = [
        each
        for each in situation.running
        if each.running_seconds > LEAST_SECONDS and not each.is_wedged
    ]
    usual = situation.usual({attempt.name for attempt in suspects})
    found = (each for each in suspects if is_long(each.running_seconds, usual.get(each.name)))
    for attempt in islice(found, MOST):
        yield Notice(
            "long_run",
            WARNING,
            str(attempt.task_id),
            detail=attempt.name,
            seconds=attempt.running_seconds,
            usual_seconds=usual.get(attempt.name),
            since=attempt.started_at,
        )


def is_long(seconds: float, usual: float | None) -> bool:
    """Return whether an attempt is long compared with its name's usual time, if that is known."""
    return seconds > (UNKNOWN_SECONDS if usual is None else max(LEAST_SECONDS, LONG * usual))
