"""A task's history: its events in order, and how long each phase took."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from taskqueue.core.states import FINISHED, LeaseStatus, TaskStatus
from taskqueue.engine.lost import ENDED_BY_HAND
from taskqueue.models import Audit, Lease, Task

ONE_TRANSACTION = timedelta(milliseconds=500)
MOST_ROWS = 20


class What(StrEnum):
    """A kind of event."""

    ENQUEUED = "enqueued"
    # It was enqueued by a schedule, or for a step of a workflow.
    SCHEDULED = "scheduled"
    STEP = "step"
    READY = "ready"
    ATTEMPT_STARTED = "attempt_started"
    STOP_REQUESTED = "stop_requested"
    STOP_SEEN = "stop_seen"
    WEDGED = "wedged"
    PROGRESSED = "progressed"
    ATTEMPT_ENDED = "attempt_ended"
    ACTION = "action"
    ENDED = "ended"
    RUNNING = "running"
    WAITING = "waiting"


# Kinds that say what the task is doing now.
NOW = (What.RUNNING, What.WAITING)


@dataclass(frozen=True)
class Event:
    """Something that happened to a task, or that is happening now."""

    at: datetime
    what: What
    # The status with which the attempt or the task ended.
    status: str = ""
    # The verb of an action.
    verb: str = ""
    attempt: int = 0
    # How long the wait, the run or the whole took that ended with this event.
    seconds: float | None = None
    who: str = ""
    error_class: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Stretch:
    """A period in a task's life."""

    # `wait`, `idle` after an end, or the status of the attempt that ran.
    kind: str
    start: datetime
    end: datetime
    # The row in a drawing: attempts of several workers may overlap, so each has its own.
    row: int = 0

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return seconds_between(self.start, self.end)


def seconds_between(start: datetime, end: datetime) -> float:
    """Return the seconds between two moments, never negative even if clocks differ."""
    return max(0.0, (end - start).total_seconds())


def begun_at(lease: Lease) -> datetime:
    """Return when its body began; by the worker's measurement, maybe just before its claim."""
    return max(lease.claimed_at, lease.started_at or lease.claimed_at)


def events_of(
    task: Task, leases: Sequence[Lease], audits: Sequence[Audit], now: datetime
) -> list[Event]:
    """Return everything known about the task, oldest first. Leases and audits must be in order."""
    events = list(_beginning(task))
    since, retried = task.enqueued_at, _retried_at(audits)
    for lease in leases:
        ready = max([since, *(at for at in retried if since <= at <= lease.claimed_at)])
        is_told = any(_tells_of_end(entry, lease) for entry in audits)
        waited = seconds_between(ready, lease.claimed_at)
        events.extend(_attempt(lease, waited, tells_stop=not is_told))
        since = max(since, lease.finished_at or since)
    # The attempt itself shows the first stop request.
    has_stops = any(lease.stop_requested_at for lease in leases)
    events.extend(
        _action(entry, task)
        for entry in audits
        if not has_stops or entry.verb != "stop" or entry.detail
    )
    events.append(_last(task, leases, since, now))
    return sorted(events, key=lambda event: (event.what in NOW, event.at))


def _beginning(task: Task) -> Iterator[Event]:
    enqueued_at, ready_at = task.enqueued_at, task.ready_at
    yield Event(enqueued_at, What.ENQUEUED)
    if task.schedule_id is not None:
        yield Event(enqueued_at, What.SCHEDULED, detail=str(task.options.get("schedule", "")))
    if task.step_id is not None:
        yield Event(enqueued_at, What.STEP)
    if ready_at is not None and ready_at > enqueued_at + ONE_TRANSACTION:
        yield Event(ready_at, What.READY)


def _retried_at(audits: Iterable[Audit]) -> list[datetime]:
    return [entry.at for entry in audits if entry.verb == "retry" and not entry.detail]


def _tells_of_end(entry: Audit, lease: Lease) -> bool:
    """Return whether the entry is about the stop that ended this attempt of a lost worker."""
    at = lease.stop_requested_at
    is_same = at is not None and abs(entry.at - at) < ONE_TRANSACTION
    is_end = entry.verb in ("stop", "cancel") and lease.error_message == ENDED_BY_HAND
    return is_same and is_end and entry.actor == lease.stop_requested_by and bool(entry.detail)


def _attempt(lease: Lease, waited: float, *, tells_stop: bool) -> Iterator[Event]:
    begun, number = begun_at(lease), lease.attempt
    yield Event(begun, What.ATTEMPT_STARTED, attempt=number, seconds=waited, who=lease.worker_id)
    if lease.stop_requested_at is not None and tells_stop:
        by, reason = lease.stop_requested_by, lease.stop_reason
        yield Event(lease.stop_requested_at, What.STOP_REQUESTED, who=by, detail=reason)
    if lease.stop_seen_at is not None:
        yield Event(lease.stop_seen_at, What.STOP_SEEN)
    if lease.wedged_at is not None:
        yield Event(lease.wedged_at, What.WEDGED)
    if lease.progressed_at is not None and lease.progress is not None:
        has_detail = lease.progress_detail is not None
        detail = json.dumps(lease.progress_detail, ensure_ascii=False) if has_detail else ""
        words = " ".join(filter(None, (lease.progress_message, detail)))
        said = f": {words}" if words else ""
        yield Event(
            lease.progressed_at, What.PROGRESSED, attempt=number,
            detail=f"{lease.progress:g} %{said}",
        )  # fmt: skip
    if lease.finished_at is not None:
        yield Event(
            lease.finished_at, What.ATTEMPT_ENDED, status=lease.status, attempt=number,
            seconds=seconds_between(begun, lease.finished_at),
            error_class=lease.error_class, detail=lease.error_message,
        )  # fmt: skip


def _action(entry: Audit, task: Task) -> Event:
    at, end = entry.at, task.finished_at
    if end is not None and end < at < end + ONE_TRANSACTION:
        at = end  # The entry is written after the end that it is about.
    detail = "; ".join(filter(None, (entry.detail, entry.reason)))
    return Event(at, What.ACTION, verb=entry.verb, who=entry.actor, detail=detail)


def _last(task: Task, leases: Sequence[Lease], since: datetime, now: datetime) -> Event:
    """Return how the task ended, or what it is doing now."""
    if task.status in FINISHED and task.finished_at is not None:
        has_own_error = not leases or leases[-1].error_message != task.error_message
        return Event(
            task.finished_at, What.ENDED, status=task.status,
            seconds=seconds_between(task.enqueued_at, task.finished_at),
            error_class=task.error_class if has_own_error else "",
            detail=task.error_message if has_own_error else "",
        )  # fmt: skip
    running = [begun_at(lease) for lease in leases if lease.status == LeaseStatus.RUNNING]
    if running or task.status == TaskStatus.RUNNING:
        seconds = seconds_between(min(running), now) if running else None
        return Event(now, What.RUNNING, seconds=seconds)
    return Event(now, What.WAITING, seconds=seconds_between(since, now))


def stretches_of(
    task: Task, leases: Sequence[Lease], audits: Sequence[Audit], now: datetime
) -> list[Stretch]:
    """Return the life of the task, divided where attempts began or ended."""
    end = task.finished_at or now
    if task.broadcast or task.workers > 1:
        return [
            Stretch(lease.status, lease.claimed_at, lease.finished_at or end, row)
            for row, lease in enumerate(leases[-MOST_ROWS:])
        ]
    stretches: list[Stretch] = []
    since, retried = task.enqueued_at, _retried_at(audits)
    for lease in leases:
        stretches.extend(_gap(since, lease.claimed_at, retried))
        since = lease.finished_at or end
        stretches.append(Stretch(lease.status, lease.claimed_at, since))
    stretches.extend(_gap(since, end, retried))
    return [stretch for stretch in stretches if stretch.end > stretch.start]


def _gap(start: datetime, end: datetime, retried: Iterable[datetime]) -> Iterator[Stretch]:
    """Yield whether it waited between two attempts, or had ended until somebody retried it."""
    again = max((at for at in retried if start <= at <= end), default=None)
    if again is not None:
        yield Stretch("idle", start, again)
        start = again
    yield Stretch("wait", start, end)
