"""Counters of one worker since its process began, and summaries of them.

The worker's threads write them, and the threads of a port read them. There is no lock: each number
only grows, and a reader may see one number a moment earlier than another.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from taskqueue.core.histogram import HIGHEST, LOWEST, bucket_of, counted
from taskqueue.core.outcomes import WHOLE_RUNS, Outcome, Recorded
from taskqueue.engine.totals import label_among
from taskqueue.worker.jobs import Job
from taskqueue.worker.vitals import Vitals

OUTCOMES = ("succeeded", "failed", "lost", "stopped", "returned")


class Durations:
    """A histogram of fixed size, which can be read while it is written."""

    def __init__(self) -> None:
        self._counts = [0] * (HIGHEST - LOWEST + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bucket_of(seconds) - LOWEST] += 1
        self.seconds += seconds

    def add_all(self, durations: Sequence[float]) -> None:
        """Count several durations."""
        for bucket, number in counted(durations).items():
            self._counts[bucket - LOWEST] += number
        self.seconds += sum(durations)

    def counts(self) -> dict[int, int]:
        """Return the counts that are not zero, by bucket."""
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

    def __init__(self) -> None:
        self.vitals = Vitals()  # Count the pings.
        self.began_at = time.time()
        self.name = self.pool = ""
        # The queues that the worker was told to serve; empty for all.
        self.named: frozenset[str] = frozenset()
        self.queues: dict[str, QueueMeter] = {}
        self.claims = self.claimed = 0
        # Attempts that did not succeed and are retried, and those that ended their task.
        self.retried = self.failed = 0
        self.children_started = self.children_crashed = 0
        # The durations of advancing workflows after ends that were recorded here.
        self.advances = Durations()
        self.occupancy: Callable[[], Occupancy] = Occupancy

    def begin(
        self,
        name: str,
        pool: str,
        occupancy: Callable[[], Occupancy],
        *,
        named: Iterable[str] = (),
    ) -> None:
        """Record the name of a worker about to be registered, and the queues that it was given.

        `occupancy` says how busy it is; any thread may call it.
        """
        self.name, self.pool, self.occupancy = name, pool, occupancy
        self.named = frozenset(named)

    def claimed_batch(self, number: int) -> None:
        """Count a claim of `number` tasks."""
        self.claims += 1
        self.claimed += number

    def recorded(self, job: Job, outcome: Outcome, recorded: Recorded) -> None:
        """Count a recorded outcome."""
        task_status, lease_status, _ = recorded
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

    def succeeded(self, ends: Iterable[tuple[Job, Outcome]]) -> None:
        """Count successes, each as `recorded` does."""
        for queue_name, group in groupby(ends, key=lambda end: end[0].queue_name):
            queue, alike = self._queue(queue_name), list(group)
            queue.outcomes["succeeded"] += len(alike)
            started = [
                (job.ready_at, outcome[2], outcome[3])
                for job, outcome in alike
                if outcome[3] is not None
            ]
            queue.runs.add_all([ended - began for _, ended, began in started])
            queue.waits.add_all(
                [
                    max(0.0, began - ready_at)
                    for ready_at, _, began in started
                    if ready_at is not None
                ]
            )

    def ended(self) -> Counter[str]:
        """Return the ended attempts since the beginning, by what that means for their tasks."""
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


logger = logging.getLogger("taskqueue.worker")

INTERVAL = 60.0  # Seconds between two lines.
ENDS = ("succeeded", "failed", "retried", "other")
INTERVAL_TERMINAL, INTERVAL_FILE = 0.2, 2.0


class Summary:
    """Logs the difference between two looks at the meter."""

    def __init__(self, meter: Meter, now: float) -> None:
        self._meter = meter
        self._logged: Counter[str] = Counter()
        self._logged_at = now
        self.next_at = now + INTERVAL

    def step(self, now: float) -> None:
        """Log the attempts that have ended since the last line, once it is time."""
        if now < self.next_at:
            return
        ended = self._meter.ended()
        if counts := ended - self._logged:
            logger.info(
                "Attempts ended in_seconds=%.0f succeeded=%s failed=%s retried=%s other=%s "
                "running=%s",
                now - self._logged_at,
                *(counts[outcome] for outcome in ENDS),
                self._meter.occupancy().busy,
            )
        self._logged, self._logged_at = ended, now
        self.next_at = now + INTERVAL

    def end(self, name: str) -> None:
        """Log that the worker has stopped, with the counts of its attempts."""
        ended = self._meter.ended()
        logger.info(
            "Worker stopped name=%s succeeded=%s failed=%s retried=%s other=%s",
            name,
            *(ended[outcome] for outcome in ENDS),
        )


class ProgressLine:
    """Counts recorded tasks, and shows the counts at intervals."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._shown_at = 0.0

    def count(self, statuses: Iterable[str]) -> None:
        """Count recorded tasks."""
        self._counts.update(statuses)
        now = time.monotonic()
        interval = INTERVAL_TERMINAL if self._is_terminal else INTERVAL_FILE
        if now - self._shown_at >= interval:
            self._show(now)

    def end(self) -> None:
        """Show the final counts."""
        self._show(time.monotonic())
        if self._is_terminal:
            sys.stderr.write("\n")

    def _show(self, now: float) -> None:
        self._shown_at = now
        total = sum(self._counts.values())
        seconds = max(now - self._began, 1e-6)
        parts = ", ".join(f"{count:,} {status}" for status, count in sorted(self._counts.items()))
        line = f"{total:,} recorded in {seconds:.1f} s ({total / seconds:,.0f}/s): {parts or '-'}"
        sys.stderr.write(f"\r{line:<78}" if self._is_terminal else f"{line}\n")
        sys.stderr.flush()
