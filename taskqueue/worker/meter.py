"""Counters of one worker since its process began, counted where things happen.

The threads of the worker write, a port's threads read. There is no lock: each number only grows,
and a reader may see one of them a moment before the other.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from taskqueue.core.histogram import HIGHEST, LOWEST, bucket_of
from taskqueue.core.outcomes import WHOLE_RUNS, Outcome, Recorded
from taskqueue.engine.totals import label_among
from taskqueue.worker.jobs import Job
from taskqueue.worker.vitals import Vitals

OUTCOMES = ("succeeded", "failed", "lost", "stopped", "returned")


class Durations:
    """A histogram that does not change its size, so that it can be read while it is written."""

    def __init__(self) -> None:
        self._counts = [0] * (HIGHEST - LOWEST + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[bucket_of(seconds) - LOWEST] += 1
        self.seconds += seconds

    def counts(self) -> dict[int, int]:
        """The counts that are not zero, by bucket."""
        return {LOWEST + place: number for place, number in enumerate(self._counts) if number}


@dataclass
class QueueMeter:
    """Attempts of one queue."""

    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    runs: Durations = field(default_factory=Durations)
    waits: Durations = field(default_factory=Durations)


@dataclass(frozen=True)
class Occupancy:
    """How busy the worker is."""

    slots: int = 0
    busy: int = 0
    held: int = 0
    pids: tuple[int, ...] = ()  # Of its children.


class Meter:
    """The counters of one worker."""

    def __init__(self, vitals: Vitals | None = None) -> None:
        """The vitals count the pings."""
        self.vitals = vitals or Vitals()
        self.began_at = time.time()
        self.name = self.pool = ""
        # The queues that the worker was told to take from; empty: all.
        self.named: frozenset[str] = frozenset()
        self.queues: dict[str, QueueMeter] = {}
        self.claims = self.claimed = 0
        # Attempts that did not succeed and are retried, and those that ended their task.
        self.retried = self.failed = 0
        self.children_started = self.children_crashed = 0
        self.occupancy: Callable[[], Occupancy] = Occupancy

    def begin(
        self,
        name: str,
        pool: str,
        occupancy: Callable[[], Occupancy],
        *,
        named: Iterable[str] = (),
    ) -> None:
        """Note the name of a worker, about to be registered, and the queues that it was given.

        `occupancy` says how busy it is; any thread may call it.
        """
        self.name, self.pool, self.occupancy = name, pool, occupancy
        self.named = frozenset(named)

    def claimed_batch(self, number: int) -> None:
        """Count a claim, which gave so many tasks."""
        self.claims += 1
        self.claimed += number

    def recorded(self, job: Job, outcome: Outcome, recorded: Recorded) -> None:
        """Count a recorded outcome."""
        task_status, lease_status = recorded
        if lease_status is None:
            return
        queue = self._queue(job.queue_name)
        queue.outcomes[lease_status] += 1
        if task_status == "retrying":
            self.retried += 1
        elif task_status == "failed" and lease_status != "succeeded":
            self.failed += 1
        if outcome.started is None:
            return
        if outcome.kind in WHOLE_RUNS:
            queue.runs.add(outcome.ended - outcome.started)
        if job.ready_at is not None:
            queue.waits.add(max(0.0, outcome.started - job.ready_at))

    def ended(self) -> Counter[str]:
        """Attempts that have ended since the beginning, by what that means for their tasks."""
        outcomes = [queue.outcomes for queue in list(self.queues.values())]
        total = sum(sum(counts.values()) for counts in outcomes)
        succeeded = sum(counts["succeeded"] for counts in outcomes)
        counts = {"succeeded": succeeded, "failed": self.failed, "retried": self.retried}
        return Counter({**counts, "other": total - sum(counts.values())})

    def _queue(self, queue_name: str) -> QueueMeter:
        queue = self.queues.get(queue_name)
        if queue is None:
            label = label_among(queue_name, self.queues.keys(), self.named)
            queue = self.queues.setdefault(label, QueueMeter())
        return queue
