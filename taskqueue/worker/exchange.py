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
    """A request of the main thread, and what came of it, as far as it got."""

    outcomes: list[Outcome] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    want: int = 0
    free: int = 0  # How many slots have nothing to do: some tasks are not claimed ahead.
    announced: Sequence[str] = ()  # The queues to claim from, before all else; none: all of them.
    unknown: Sequence[str] = ()  # Names that this worker cannot run, and does not claim.
    # What may be claimed of queues and definitions that have so many slots at most.
    room: Room = NO_LIMITS
    unsure: Sequence[int] = ()  # Leases whose COMMIT got no answer.
    # The leases that the worker knows, where it is to hand back those that it does not.
    held: list[int] | None = None
    # Whether the worker has been claiming without a pause, so that nobody need wake it.
    is_busy: bool = False
    may_sleep: bool = False
    # How many tasks wait behind those that run: with many, bodies are short.
    claimed_ahead: int = 0
    # Whether the last claim left nothing behind, and nothing was announced since.
    has_looked: bool = False
    with_duties: bool = False
    # Whether to find out if there are workflows to be advanced.
    looks_ahead: bool = False

    # Whether a batch was recorded meanwhile, which the duties may not have seen.
    is_overtaken: bool = False
    is_recorded: bool = False  # Whether all was written, and the claim answered.
    recorded: dict[int, Recorded] = field(default_factory=dict)
    claimed: list[Claimed] = field(default_factory=list)
    has_steps: bool = False  # Whether any of them belongs to a workflow, or one was seen.
    claimed_at: float = 0.0
    ended: Collection[int] = ()  # Of the unsure ones, those that had ended.
    running: Collection[int] = ()  # Of the unsure ones, those that had not.
    unknown_leases: Collection[int] = ()
    has_ready: bool | None = None  # Whether the duties saw ready tasks; None: they were not served.
    duties_at: float | None = None  # When they are to be served next.
    are_duties_cut: bool = False  # Whether some that are due are left to the next turn.
    step_ends_at: float = math.inf  # When the duties are to count ends of steps that were left.
    # When a request is to come that counts ends of steps which wait for that; None: as it was.
    fold_at: float | None = None
    # Seconds that it took to move workflows on after the ends that were recorded.
    advance_seconds: float | None = None
    has_released: bool = False  # Whether workflows were advanced: there may be tasks to claim.
    limited_at: float = math.inf  # When the next token comes for what waits for one.
    limited_seconds: float = 0.0  # How long a claim under limits took that got some.
    is_limited_left: bool = False  # Whether others held tasks under limits that could be claimed.
    # Whether tasks of a workflow that is being stopped may stand before what is to be claimed.
    is_stopped_left: bool = False
    # The queues of tasks that they have released; None among them: others may have.
    released_queues: set[str | None] = field(default_factory=set)
    claims_last: bool = False  # Whether the claim is left until workflows were advanced.
    error: Exception | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it was carried out, and was about outcomes and tasks alone."""
        is_whole = self.is_recorded and self.error is None
        return is_whole and not self.unsure and self.held is None and self.has_ready is None

    @property
    def writes(self) -> bool:
        """Whether there is something to write."""
        return bool(self.outcomes or self.lines or self.notes)

    @property
    def may_advance(self) -> bool:
        """Whether ends were recorded that may move workflows on."""
        return any(row.step_id is not None for row in self.recorded.values())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write, to claim or to find out."""
        return not (self.writes or self.want or self.unsure or self.held is not None)
