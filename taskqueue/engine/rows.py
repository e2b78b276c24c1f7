"""The parameters and results of the engine's statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple


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
    # Seconds until its deadline, at the time of the claim.
    deadline_in: float | None
    queue_name: str
    ping_seconds: float | None
    # Seconds for which it had been ready at the time of the claim.
    waited: float | None
    # Whether it was claimed by `engine.apart`, and needs a free slot for itself.
    is_apart: bool = False


# The ready tasks of a queue that are searched for the best one: before it there may be many of a
# definition that is paused or that the worker does not know.
MOST_LOOKED_AT = 200
# With this floor every ready task of a queue is considered, however early it was due.
NO_FLOORS: Mapping[str, datetime] = MappingProxyType({})


class Candidate(NamedTuple):
    """A task that this worker may take, but not every worker."""

    # Its values before the claim; for a broadcast, `failures` are those of this worker only.
    task: Claimed
    priority: int
    # Only to be compared with other times of the same database.
    run_after: float
    # Whether it names its workers.
    is_named: bool
    # Whether several workers must run it.
    is_shared: bool

    @classmethod
    def of(cls, row: Sequence[Any]) -> Candidate:
        """Make one from the columns of a claim, without the lease, and the columns above."""
        return cls(Claimed._make((0, *row[:-4], True)), *row[-4:])


class Held(NamedTuple):
    """A lease that a worker believes it holds, and for how long a ping extends it."""

    lease_id: int
    seconds: float
    # Seconds since the body started; None if it has not started.
    started: float | None


class StopRequest(NamedTuple):
    """A request that a running attempt stop."""

    lease_id: int
    by: str
    reason: str


class Renewal(NamedTuple):
    """The result of a ping."""

    renewed: frozenset[int]
    # Leases that are no longer running, for whatever reason.
    ended: frozenset[int]
    succeeded: frozenset[int]
    stops: tuple[StopRequest, ...]


class Note(NamedTuple):
    """The start and progress of a running attempt."""

    lease_id: int
    started: float | None
    progress: float | None
    message: str | None
    # As JSON text.
    detail: str | None = None


class LogLine(NamedTuple):
    """A captured line; `age` is how many seconds ago it was logged."""

    lease_id: int
    age: float
    level: int
    logger: str
    message: str


class RollupRow(NamedTuple):
    """The figures of one queue and name that a process has counted so far."""

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
    # A histogram, as JSON text.
    run_times: str
    wait_seconds: float
    wait_times: str
    slowest_seconds: float
    slowest_task_id: str | None


# The columns of a rollup that count attempts, then those that count tasks.
COUNTS = RollupRow._fields[3:11]
# The SET of a statement that overwrites an earlier count of the same process.
RECOUNTED = ",\n    ".join(f"{column} = EXCLUDED.{column}" for column in RollupRow._fields[3:])


class Ended(NamedTuple):
    """A task that has reached a final status."""

    task_id: str
    queue_name: str
    name: str
    status: str
    # The step of a workflow that must be notified.
    step_id: int | None = None
    # The changes of its body to the workflow's context, as JSON text.
    updates: str | None = None
    # Whether its body returned a fan-out.
    has_fan: bool = False


class Folded(NamedTuple):
    """A step after its notes were counted."""

    step_id: int
    workflow_id: str
    # Whether its workflow must be advanced.
    is_due: bool
    # How many of its members have not ended.
    lacking: int


class StepTasks(NamedTuple):
    """New tasks of steps by column: ids, arguments as JSON text, and their steps and places."""

    ids: Sequence[str]
    args: Sequence[str]
    kwargs: Sequence[str]
    step_ids: Sequence[int]
    places: Sequence[int]
    # For limited tasks; None for others.
    partitions: Sequence[str | None]
    limits: Sequence[str | None]
