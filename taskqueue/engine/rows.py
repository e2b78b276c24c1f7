"""What the engine's statements take and give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from taskqueue.models.task import Route


class Request(NamedTuple):
    """What all tasks of one enqueue share. A time is either absolute, or seconds from now."""

    name: str
    queue_name: str
    priority: int
    run_at: datetime | None
    run_in: float | None
    options: str
    metadata: str
    max_attempts: int
    max_crashes: int
    crash_delay: timedelta
    deadline_at: datetime | None
    deadline_in: float | None
    expires_in: float | None
    lease_duration: timedelta | None
    ping_interval: timedelta | None
    retention: timedelta | None
    unique_scope: str
    unique_for: str
    unique_in: float | None
    workers: int
    worker_names: tuple[str, ...] | None
    broadcast: bool
    restart: str | None
    at: datetime | None = None
    """The moment of the enqueue, where many share one; None: when its statement runs."""

    def run_after_at(self, now: datetime) -> datetime:
        """When its tasks are due if they are enqueued at that moment: never before."""
        wanted = self.run_at or now + timedelta(seconds=self.run_in or 0)
        # In the past it means now. Else it would pass those that wait already, and seem late.
        return max(wanted, now)

    def scope_of(self, payload: Payload) -> str:
        """Within which a task's key is unique; empty for a task that has none."""
        return "" if payload.unique_key is None else self.unique_scope

    @property
    def is_apart(self) -> bool:
        """Whether several workers are to run it, or only named ones may."""
        return self.workers > 1 or self.broadcast or self.worker_names is not None

    @property
    def is_plain(self) -> bool:
        """Whether any worker may run it at once, with no limit in time."""
        return (
            not self.is_apart
            and self.ping_interval is None
            and self.at is None
            and self.run_at is None
            and self.run_in is None
            and self.deadline_at is None
            and self.deadline_in is None
            and self.expires_in is None
        )


class ApartColumns(NamedTuple):
    """What a task's row says of the workers that may run it."""

    route: int
    workers: int
    worker_names: str | None
    """JSON text."""
    pinned_to: str
    broadcast: bool
    open_slots: int


def apart_columns(
    *, workers: int, worker_names: Sequence[str] | None, broadcast: bool
) -> ApartColumns:
    """The columns that these options fill.

    A broadcast has no workers yet: it is seated when a worker first sees it ready.
    """
    names = worker_names
    wanted = 0 if broadcast else workers
    return ApartColumns(
        route=Route.APART if broadcast or workers > 1 or names is not None else Route.ORDINARY,
        workers=wanted,
        worker_names=None if names is None else json.dumps(list(names)),
        pinned_to=names[0] if names is not None and len(names) == 1 else "",
        broadcast=broadcast,
        open_slots=wanted,
    )


class Payload(NamedTuple):
    """What is one task's own: its id as 32 hexadecimal digits, its arguments as JSON text."""

    id: str
    args: str
    kwargs: str
    unique_key: str | None


class Enqueued(NamedTuple):
    """What became of one enqueue."""

    id: str
    status: str
    enqueued_at: datetime
    ready_at: datetime | None
    created: bool = True
    updated: bool = False
    name: str | None = None
    """Of the definition, where a task holds the unique key: it may be another's."""


class Claimed(NamedTuple):
    """A task that a worker now holds."""

    lease_id: int
    task_id: str
    name: str
    attempt: int
    args: str
    kwargs: str
    options: str
    metadata: str
    failures: int
    max_attempts: int
    crashes: int
    lease_seconds: float | None
    deadline_in: float | None
    """Seconds until its deadline, at the claim."""
    queue_name: str
    ping_seconds: float | None
    waited: float | None
    """Seconds for which it had been ready, at the claim."""
    is_apart: bool = False
    """Whether it was claimed for its workers' sake, and takes a free slot of its own."""


NO_FLOORS: Mapping[str, datetime] = MappingProxyType({})
"""Every ready task of a queue is looked at, however early it was due."""


class Candidate(NamedTuple):
    """A task that a worker may take, among those that not every worker may."""

    task_id: str
    name: str
    attempt: int
    args: str
    kwargs: str
    options: str
    metadata: str
    failures: int
    """Of this worker alone, where every worker has attempts of its own: in a broadcast."""
    max_attempts: int
    crashes: int
    lease_seconds: float | None
    deadline_in: float | None
    queue_name: str
    ping_seconds: float | None
    waited: float | None
    priority: int
    run_after: float
    """To be compared with those of the same database."""
    is_named: bool
    """Whether it names its workers."""
    is_shared: bool
    """Whether several workers are to run it."""


class Held(NamedTuple):
    """A lease that a worker believes it holds, for how long a ping extends it."""

    lease_id: int
    seconds: float
    started: float | None
    """How many seconds ago the body started; None: not yet."""


class StopRequest(NamedTuple):
    """Somebody asks a running attempt to stop."""

    lease_id: int
    by: str
    reason: str


class Renewal(NamedTuple):
    """What a ping found."""

    renewed: frozenset[int]
    ended: frozenset[int]
    """Leases that are no longer running, whoever ended them."""
    succeeded: frozenset[int]
    stops: tuple[StopRequest, ...]


class Note(NamedTuple):
    """What is known of a running attempt."""

    lease_id: int
    started: float | None
    progress: float | None
    message: str | None


class LogLine(NamedTuple):
    """One captured line; `age` is how many seconds ago it was said."""

    lease_id: int
    age: float
    level: int
    logger: str
    message: str


class RollupRow(NamedTuple):
    """The figures of one queue and name, as one process has counted them so far."""

    id: str
    queue_name: str
    name: str
    succeeded: int
    failed: int
    lost: int
    stopped: int
    returned: int
    tasks_succeeded: int
    tasks_failed: int
    tasks_cancelled: int
    run_seconds: float
    run_times: str
    """A histogram, as JSON text."""
    wait_seconds: float
    wait_times: str
    slowest_seconds: float
    slowest_task_id: str | None


class Quiet(NamedTuple):
    """A running attempt that has not been heard of for a while."""

    lease_id: int
    task_id: str
    name: str
    worker: str
    attempt: int
    seconds: float
    """Since its last sign of life."""
    marked_for: float | None
    """Seconds since it was found to be wedged; None: it was not."""


class DutyForecast(NamedTuple):
    """What the duties found, and when they are needed next. Seconds from now; None: nothing."""

    promoted: int
    next_due: float | None
    next_end: float | None
    next_expiry: float | None
    has_ready: bool
    rank: int
    """How many live workers stand before this one in serving the duties."""
    has_apart: bool
    """Whether a task waits that not every worker may take, but perhaps this one."""
    next_schedule: float | None
    """Until the next nominal time of a schedule."""
    has_ended_runs: bool
    """Whether a task of a schedule has ended that has not been noted there."""
    has_operations: bool
    """Whether a bulk act is not finished."""
