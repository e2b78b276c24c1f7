"""The history of a run as plain values: no database is needed to view it or to check it.

Times are seconds since 1970 by the database's clock, except in the journal: there they are the
host's monotonic clock, which all processes of a host share. `tests.chaos.gathering` reads a
history.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos.batch_rows import BatchRow, EventRow
from tests.chaos.feed_rows import NO_FEED, Feed, load_feed
from tests.chaos.limit_rows import LeftRow, LimitChange, LimitedRow, ServingRow
from tests.chaos.workflow_rows import (
    CallbackRow,
    EdgeRow,
    MemberRow,
    NoteRow,
    StepRow,
    VerbRow,
    WorkflowRow,
)

NO_ANSWER = ("asked", "unknown")
"""States of an enqueue of which its client does not know what became of it."""


@dataclass(frozen=True, kw_only=True)
class Enqueue:
    """What a client knows of one call of `enqueue` or `enqueue_many`.

    `sequence` is the client's own number for it, unique in the run, and stands in the tasks'
    metadata as `{"sequence": …}`: so tasks are found of whose enqueue no answer came.
    """

    sequence: int
    state: str = "asked"
    """asked, ok, failed (refused or rolled back: nothing may be there), or unknown."""
    kind: str = ""
    is_atomic: bool = False
    unique_key: str = ""
    unique_scope: str = ""
    workers: int = 1
    """How many workers must run it; of a broadcast only where that is known, else 1."""
    count: int = 1
    """How many tasks it asked for."""
    task_ids: tuple[str, ...] = ()
    created: bool = True
    """False where another task held the key: `task_ids` then names the holder."""


class TaskRow(NamedTuple):
    """A task as it was in the end."""

    id: str
    name: str
    queue_name: str
    status: str
    sequence: int | None
    attempt: int
    failures: int
    crashes: int
    max_attempts: int
    max_crashes: int
    workers: int
    worker_names: list[str] | None
    broadcast: bool
    open_slots: int
    running_leases: int
    successes: int
    unique_key: str | None
    unique_scope: str
    unique_for: str
    unique_until: float | None
    holds_unique_key: bool
    retry_of: str | None
    attempts_before_retry: int
    enqueued_at: float
    run_after: float
    ready_at: float | None
    started_at: float | None
    finished_at: float | None
    error_class: str
    error_message: str

    @property
    def is_shared(self) -> bool:
        """Whether it is one for several workers."""
        return self.workers != 1 or self.broadcast


class LeaseRow(NamedTuple):
    """An attempt as it was in the end."""

    id: int
    task_id: str
    worker_name: str
    attempt: int
    status: str
    claimed_at: float
    started_at: float | None
    expires_at: float
    finished_at: float | None
    is_shared: bool
    stop_requested_at: float | None
    stop_seen_at: float | None
    error_class: str
    error_message: str
    lease_seconds: float
    """For how long a ping extends it."""


class EffectRow(NamedTuple):
    """What a body wrote in its own transaction."""

    task_id: str
    attempt: int
    note: str


class Line(NamedTuple):
    """What a body appended to the journal, a file; `at` is the host's monotonic clock."""

    task_id: str
    attempt: int
    pid: int
    at: float
    text: str


class AuditRow(NamedTuple):
    """What somebody did by hand."""

    at: float
    actor: str
    verb: str
    subject: str
    reason: str
    before: str
    detail: str = ""


class Change(NamedTuple):
    """What a trigger wrote down, in the transaction of the change. Those of one task are in order.

    `before` is empty for a new row, `after` for a deleted one. A change of a lease that has ended
    already stands here with the same status before and after.
    """

    number: int
    at: float
    noun: str
    """task, lease, log or workflow."""
    task_id: str
    attempt: int
    """That of the task before or after the change, whichever is higher: one is taken back."""
    before: str
    after: str
    worker_name: str = ""
    holds_unique_key: bool = False
    expires_at: float | None = None
    """Of a lease, as it was before the change."""
    run_after: float | None = None
    """Of a task, as it was before the change."""


class Term(NamedTuple):
    """A worker was told to end, and when it had (None: it still runs)."""

    worker_name: str
    at: float
    exited_at: float | None


class Death(NamedTuple):
    """A worker's parent was killed, no earlier than then."""

    worker_name: str
    at: float


class Fault(NamedTuple):
    """What was done, and until when, to some workers or, where none is named, to the database."""

    name: str
    began_at: float
    healed_at: float
    workers: tuple[str, ...] = ()


class Stall(NamedTuple):
    """So many seconds of that span the machine kept from a process that had something to do."""

    since: float
    until: float
    seconds: float
    waited: Sequence[tuple[int, float]] = ()
    """The parents of workers that were not frozen, and how long each waited for a processor."""


class Sample(NamedTuple):
    """Counts by status in one snapshot, with what was enqueued and pruned until then."""

    at: float
    counts: dict[str, int]
    enqueued: int
    pruned: int


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The settings of the workers, in seconds, and how exact the clocks are."""

    lease: float = 6.0
    ping: float = 1.0
    takeover_interval: float = 1.0
    stop_grace: float = 10.0
    kill_grace: float = 10.0
    shutdown_timeout: float = 30.0
    slack: float = 2.0
    """What a machine may take longer, beside what it kept from all: see `History.stalls`."""
    term_slack: float = 0.5
    """Until a signal is seen; a claim that was under way then may still come."""
    clock: float = 0.002
    """How far two readings of the database's clock may be off: SQLite's gives milliseconds."""
    looks_again: bool = False
    """Whether a lease that has run out is looked at for a while before it is taken over: SQLite."""
    healing: float | None = None
    """Within how many seconds after the last fault every due task has ended; None: not asked."""


@dataclass(frozen=True, kw_only=True)
class History:
    """All that is known of a run. Read in one snapshot of the database."""

    enqueues: tuple[Enqueue, ...] = ()
    tasks: tuple[TaskRow, ...] = ()
    leases: tuple[LeaseRow, ...] = ()
    effects: tuple[EffectRow, ...] = ()
    lines: tuple[Line, ...] = ()
    audits: tuple[AuditRow, ...] = ()
    changes: tuple[Change, ...] = ()
    has_changes: bool = False
    """Whether the triggers were there from the beginning: then a task without them was not made."""
    terms: tuple[Term, ...] = ()
    deaths: tuple[Death, ...] = ()
    faults: tuple[Fault, ...] = ()
    samples: tuple[Sample, ...] = ()
    stalls: tuple[Stall, ...] = ()
    lock_waits: tuple[Stall, ...] = ()
    """How long a process waited for SQLite's write lock."""
    workflows: tuple[WorkflowRow, ...] = ()
    steps: tuple[StepRow, ...] = ()
    edges: tuple[EdgeRow, ...] = ()
    members: tuple[MemberRow, ...] = ()
    notes: tuple[NoteRow, ...] = ()
    callbacks: tuple[CallbackRow, ...] = ()
    verbs: tuple[VerbRow, ...] = ()
    repairs: int = 0
    """Steps whose counts were corrected."""
    events: tuple[EventRow, ...] = ()
    batches: tuple[BatchRow, ...] = ()
    collected: tuple[int, ...] = ()
    """The events of which no batch was made."""
    limited: tuple[LimitedRow, ...] = ()
    limit_changes: tuple[LimitChange, ...] = ()
    serving: tuple[ServingRow, ...] = ()
    left_of_limits: tuple[LeftRow, ...] = ()
    limit_repairs: int = 0
    """Partitions that a sweep found standing still."""
    feed: Feed = NO_FEED
    gathered_at: float = 0.0
    is_over: bool = True
    """Whether the run has come to its end: then every task must have."""
    bounds: Bounds = Bounds()

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> History:
        """Read what `save` wrote."""
        stored = json.loads(path.read_text())
        made: dict[str, Any] = {name: _made(name, value) for name, value in stored.items()}
        return cls(**made)


_ROWS: Mapping[str, Any] = {
    "tasks": TaskRow, "leases": LeaseRow, "effects": EffectRow, "lines": Line,
    "audits": AuditRow, "changes": Change, "terms": Term, "deaths": Death, "samples": Sample,
    "stalls": Stall, "lock_waits": Stall, "workflows": WorkflowRow, "steps": StepRow,
    "edges": EdgeRow, "members": MemberRow, "notes": NoteRow, "callbacks": CallbackRow,
    "verbs": VerbRow,
    "events": EventRow, "batches": BatchRow, "limited": LimitedRow, "limit_changes": LimitChange,
    "serving": ServingRow, "left_of_limits": LeftRow,
}  # fmt: skip


def _made(name: str, value: Any) -> Any:
    if name in _ROWS:
        return tuple(_ROWS[name](*row) for row in value)
    if name == "faults":
        faults = (Fault._make(row) for row in value)
        return tuple(fault._replace(workers=tuple(fault.workers)) for fault in faults)
    if name == "enqueues":
        return tuple(Enqueue(**{**row, "task_ids": tuple(row["task_ids"])}) for row in value)
    if name == "collected":
        return tuple(value)
    if name == "feed":
        return load_feed(value)
    return Bounds(**value) if name == "bounds" else value
