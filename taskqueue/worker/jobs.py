"""A job: a claimed task on its way through the worker, and the order made of it for a child."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.declarations import snapshots
from taskqueue.engine.rows import Claimed
from taskqueue.worker.context import Context
from taskqueue.worker.reporting import Reports

# The share of a lease after which a child that nobody renewed dies, and no body starts.
FENCE = 0.6
WINDOW = 0.04  # Seconds of work that may wait in the worker.
MAX_PER_SLOT = 384
MAX_PREFETCH = 1024
FIRST_GUESS = 0.05  # Seconds that a body takes, before any has run: too long for a reserve.
SHORTEST_BODY = 0.0001  # Seconds that the shortest body costs, with what surrounds it.


class Order(NamedTuple):
    """A frame's description of an attempt, for the child that runs it."""

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
    deadline_at: float | None  # By the monotonic clock, which all processes of a host share.
    queue_name: str
    ready_at: float | None  # Since when the task was ready, by the same clock.
    crashes: int = 0  # Attempts before this one that were lost.

    @property
    def stays(self) -> bool:
        """False: what a child records itself are successes."""
        return False

    def context(self, worker_name: str, reports: Reports, make: type[Context] = Context) -> Context:
        """The context that its body sees."""
        snapshot = snapshots.loaded(self.options) if self.options else {}
        nominal_at = snapshot.get("nominal_at")
        return make(
            task_id=self.task_id,
            _lease_id=self.lease_id,
            attempt=self.attempt,
            worker_name=worker_name,
            metadata=json.loads(self.metadata) if self.metadata else {},
            schedule=snapshot.get("schedule", ""),
            nominal_at=nominal_at and datetime.fromisoformat(nominal_at),
            _is_step=snapshots.STEP in snapshot,
            _task_name=self.name,
            _queue_name=self.queue_name,
            _report_progress=reports.report_progress,
            _report_line=reports.report_line,
        )


class Job:
    """A lease that this worker holds. Times are by the monotonic clock."""

    # As most jobs have them: one is made for every attempt, and sets what differs.
    deadline_at: float | None = None
    started_at: float | None = None
    limit_at: float | None = None
    asked_at: float | None = None
    interrupted_at: float | None = None
    stop_reason: str | None = None
    is_over = False
    noted = False
    # How its child has logged its failure: `failed`, `retrying`, or not at all.
    logged_as = ""
    # The options that travelled with the task.
    snapshot: Mapping[str, Any] = MappingProxyType({})
    timeout: float | None = None
    # Whether progress renews its time limit.
    renews_limit = False
    # Whether its next attempt is for this worker.
    stays = False
    # Whether it is a run of a schedule, which is to hear of its end.
    is_scheduled = False
    # Whether it belongs to a step of a workflow.
    is_step = False
    # When its task became ready.
    ready_at: float | None = None

    def __init__(
        self, claimed: Claimed, claimed_at: float, *, usual_lease: float = float("inf")
    ) -> None:
        self.lease_id, self.task_id, self.name = claimed[:3]
        self.queue_name = claimed.queue_name
        self.failures, self.max_attempts, self.crashes, self.lease_seconds = claimed[8:12]
        self.claimed_at = claimed_at
        self.usual_lease = usual_lease
        self.renewed(claimed_at)
        if claimed.deadline_in is not None:
            self.deadline_at = claimed_at + claimed.deadline_in
        self.ping_seconds = claimed.ping_seconds
        if claimed.options:
            snapshot = snapshots.loaded(claimed.options)
            # Whatever somebody stored must not end a worker.
            if isinstance(snapshot, dict):
                self.snapshot = snapshot
                self.timeout = snapshot.get("timeout")
                self.renews_limit = snapshot.get("timeout_from") == "progress"
                self.stays = snapshot.get("retry_on") == "same"
                self.is_scheduled = "schedule" in snapshot
                self.is_step = snapshots.STEP in snapshot
        if claimed.waited is not None:
            self.ready_at = claimed_at - claimed.waited
        # The first fields of Claimed are those of an Order, in the same order.
        times = self.deadline_at, self.queue_name, self.ready_at
        self.order = (*claimed[:10], *times, self.crashes)

    def renewed(self, began: float) -> None:
        """Note that the database was asked at `began` to claim or renew it, and did.

        Until `safe_until` nobody else can have it. The answer may come late, or meet a worker that
        was frozen: past that moment the body must not start.
        """
        self.safe_until = began + FENCE * (self.lease_seconds or self.usual_lease)

    @property
    def needs_own_child(self) -> bool:
        """Whether it crashed before: nothing may wait behind it, it might crash again."""
        return self.crashes > 0

    def start(self, now: float) -> None:
        """Note the start of its body, as far as the parent can tell."""
        self.started_at = now
        self._limit(now)

    def progressed(self, now: float) -> None:
        """Note that its body has reported progress."""
        if self.renews_limit and self.started_at is not None:
            self._limit(now)

    def _limit(self, now: float) -> None:
        if self.timeout is not None:
            self.limit_at = now + self.timeout
        if self.deadline_at is not None:
            self.limit_at = min(self.limit_at or self.deadline_at, self.deadline_at)

    def unstart(self) -> None:
        """Note that its body had not started after all: the child gave the order back."""
        self.started_at = self.limit_at = None


def aged(outcome: Outcome, now: float) -> Outcome:
    """The outcome, its moments turned into ages for the database's clock to subtract."""
    # Once for every attempt: by position, which costs a third of what `_replace` does.
    lease_id, kind, ended, started, *rest = outcome
    return Outcome._make(
        (lease_id, kind, now - ended, None if started is None else now - started, *rest)
    )


def all_aged(outcomes: Sequence[Outcome], now: float) -> list[Outcome]:
    """The outcomes as `aged` makes them, column by column."""
    if not outcomes:
        return []
    lease_ids, kinds, ended, started, *rest = zip(*outcomes, strict=True)
    ages = [now - moment for moment in ended]
    since = [None if moment is None else now - moment for moment in started]
    return list(map(_outcome, zip(lease_ids, kinds, ages, since, *rest, strict=True)))


def succeeded(rows: Iterable[Sequence[Any]]) -> list[Outcome]:
    """The outcomes of the rows of a frame of successes."""
    return [
        _outcome((lease_id, OutcomeKind.SUCCEEDED, ended, started, *_PLAIN))
        for _, lease_id, ended, started in rows
    ]


# A named tuple's own methods cost twice as much, and these run for every attempt.
_outcome: Callable[[tuple[Any, ...]], Outcome] = partial(tuple.__new__, Outcome)
_PLAIN = tuple(Outcome._field_defaults[name] for name in Outcome._fields[4:])


class Prefetch:
    """How many tasks a worker claims beyond its free slots.

    It learns how long bodies take, and reserves tens of milliseconds' worth of them. Without a
    reserve, two slots mean batches of two and a tenth of the speed; with one behind long bodies,
    tasks wait here while other workers are idle. So it grows slowly and shrinks at once.
    """

    def __init__(self, setting: int | str) -> None:
        self._fixed = setting if isinstance(setting, int) else None
        self._seconds = FIRST_GUESS

    def learn(self, seconds: float) -> None:
        """Learn from a body that took that long."""
        weight = 0.5 if seconds > self._seconds else 0.2
        self._seconds += weight * (max(seconds, SHORTEST_BODY) - self._seconds)

    def learn_all(self, seconds: Sequence[float]) -> None:
        """Learn from bodies that took that long, in turn."""
        if max(seconds, default=0.0) > SHORTEST_BODY:
            for each in seconds:
                self.learn(each)
        else:
            self._seconds = SHORTEST_BODY + 0.8 ** len(seconds) * (self._seconds - SHORTEST_BODY)

    def depth(self, slots: int) -> int:
        """How many orders may stand behind the running bodies of a child with that many slots."""
        if self._fixed is not None:
            return self._fixed
        return slots * min(MAX_PER_SLOT, int(WINDOW / max(self._seconds, SHORTEST_BODY)))

    def reserve(self, slots: int, stalled: float) -> int:
        """How many tasks to hold beyond the slots, when some body has run for `stalled` already."""
        if self._fixed is not None:
            return self._fixed
        return 0 if stalled > WINDOW else min(MAX_PREFETCH, self.depth(slots))
