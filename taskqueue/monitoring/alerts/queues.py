"""Judge rules about queues: latency, depth, missing workers, and full limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from taskqueue.core.alerts import Judged
from taskqueue.models import AlertRule
from taskqueue.monitoring.alerts import sentences as texts
from taskqueue.monitoring.alerts.rules import judged_by, threshold_of
from taskqueue.monitoring.alerts.sentences import said
from taskqueue.monitoring.alerts.situation import AlertSituation
from taskqueue.monitoring.notices.queues import (
    everything_is_paused,
    has_free_slot,
    is_deep,
    nobody_takes,
    of_deep,
    of_late,
    waits_long,
)


def latencies(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield queues that fall behind, except if nobody serves them or all is paused (other rules).

    Tasks that wait behind busy workers are distinguished from tasks that wait although a slot is
    free.
    """
    if everything_is_paused(situation):
        return
    for queue in situation.queues:
        if queue.waiting and queue.is_served and waits_long(queue, threshold_of(rule)):
            seconds = queue.reachable_seconds or 0.0
            if has_free_slot(queue, situation.workers):
                yield Judged(
                    subject=queue.name,
                    **said(
                        texts.LATE_FOR_NOTHING,
                        subject=queue.name,
                        count=queue.waiting_count,
                        ages={"age": seconds},
                    ),
                    value=seconds,
                )
            else:
                yield judged_by(of_late(queue), value=seconds)


def depths(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield queues with very many waiting tasks."""
    most = int(threshold_of(rule))
    for queue in situation.queues:
        counted = replace(queue, waiting=situation.backlog(queue, most))
        if is_deep(counted, most):
            yield judged_by(of_deep(counted), value=float(counted.waiting))


def nobody(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield that no worker takes tasks: the worker that judges is alive, but may be quiet."""
    if nobody_takes(situation.workers):
        waiting = sum(queue.waiting for queue in situation.queues)
        yield Judged(
            subject="",
            **said(texts.NOBODY, count=f"{waiting:,}"),
        )


def saturated(rule: AlertRule, situation: AlertSituation) -> Iterator[Judged]:
    """Yield limits that are used up while tasks wait for them."""
    for limit in situation.limits:
        is_full = limit.concurrency is not None and limit.fullest >= limit.concurrency
        if limit.waiting and (is_full or (limit.used_ratio or 0.0) >= 1.0):
            yield Judged(
                subject=limit.name,
                **said(
                    texts.SATURATED,
                    subject=limit.name,
                    detail=limit.allowed,
                    count=limit.waiting_count,
                ),
                value=float(limit.waiting),
            )
