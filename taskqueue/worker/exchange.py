"""A request from the main thread to the database thread, which returns it as its report."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from taskqueue.core.outcomes import Outcome, Recorded
from taskqueue.engine.rows import Claimed, Note
from taskqueue.worker.frames import Line
from taskqueue.worker.limits import NO_LIMITS, Room


@dataclass(kw_only=True)
class Exchange:
    """A request of the main thread, and its results as far as it got."""

    outcomes: list[Outcome] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    want: int = 0
    free: int = 0  # How many slots are free: some tasks are not claimed ahead.
    announced: Sequence[str] = ()  # The queues to claim from first; empty for all queues.
    unknown: Sequence[str] = ()  # Names that this worker cannot run, and does not claim.
    # How many tasks may be claimed of queues and definitions with limited slots.
    room: Room = NO_LIMITS
    unsure: Sequence[int] = ()  # Leases whose COMMIT got no answer.
    # The leases that the worker knows, if it must hand back those that it does not know.
    held: list[int] | None = None
    # Whether the worker has been claiming without a pause, so that it need not be woken.
    is_busy: bool = False
    may_sleep: bool = False
    # How many tasks wait behind running ones: with many, bodies are short.
    claimed_ahead: int = 0
    # Whether the last claim left nothing behind, and nothing was announced since.
    has_looked: bool = False
    with_duties: bool = False
    # Whether to find out if there are workflows to advance.
    looks_ahead: bool = False

    # Whether a batch was recorded meanwhile, which the duties may not have seen.
    is_overtaken: bool = False
    is_recorded: bool = False  # Whether everything was written, and the claim answered.
    recorded: dict[int, Recorded] = field(default_factory=dict)
    claimed: list[Claimed] = field(default_factory=list)
    has_steps: bool = False  # Whether a claimed task belongs to a workflow, or a workflow was seen.
    claimed_at: float = 0.0
    ended: Collection[int] = ()  # Those of `unsure` that had ended.
    running: Collection[int] = ()  # Those of `unsure` that had not.
    unknown_leases: Collection[int] = ()
    has_ready: bool | None = None  # Whether the duties saw ready tasks; None: not served.
    duties_at: float | None = None  # When to serve the duties next.
    are_duties_cut: bool = False  # Whether some due duties are left to the next turn.
    step_ends_at: float = math.inf  # When the duties must count ends of steps that were left.
    # When a request must count ends of steps that wait for it; None if unchanged.
    fold_at: float | None = None
    # The seconds of advancing workflows after the recorded ends.
    advance_seconds: float | None = None
    has_released: bool = False  # Whether workflows were advanced, so there may be tasks to claim.
    limited_at: float = math.inf  # When the next token comes for tasks that wait for one.
    limited_seconds: float = 0.0  # The seconds of a claim under limits that got tasks.
    is_limited_left: bool = False  # Whether tasks under limits were left because others had locks.
    # Whether tasks of a stopping workflow may precede the tasks to claim.
    is_stopped_left: bool = False
    # The queues of tasks that workflows have released; None stands for any queue.
    released_queues: set[str | None] = field(default_factory=set)
    claims_last: bool = False  # Whether the claim waits until workflows were advanced.
    error: Exception | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it was carried out, and was only about outcomes and tasks."""
        is_whole = self.is_recorded and self.error is None
        return is_whole and not self.unsure and self.held is None and self.has_ready is None

    @property
    def writes(self) -> bool:
        """Whether there is something to write."""
        return bool(self.outcomes or self.lines or self.notes)

    @property
    def may_advance(self) -> bool:
        """Whether ends were recorded that may advance workflows."""
        return any(row.step_id is not None for row in self.recorded.values())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write, to claim or to find out."""
        return not (self.writes or self.want or self.unsure or self.held is not None)
