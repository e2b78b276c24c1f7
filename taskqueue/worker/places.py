"""Work out which orders of a child have started, if bodies may share a slot."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from taskqueue.worker.frames import WHOLE
from taskqueue.worker.jobs import Job


class Places:
    """Computes, without asking the child, which of its jobs have started.

    A child starts its orders in turn, each as soon as there is room for it: most take a slot, those
    whose definitions have `per_slot` take a share of one. So the first `running` of the jobs have
    started, and no others have.
    """

    def __init__(self, slots: int, held: dict[int, Job]) -> None:
        self.running = 0
        self._held = held
        self._capacity = slots * WHOLE
        self._load = 0
        self._by_name: dict[str, int] = {}
        self._shares: dict[int, int] = {}  # By lease, for jobs that take less than a slot.
        self._latest = WHOLE
        self._is_closed = False

    def allow(self, per_slot: dict[str, int]) -> None:
        """Let this many bodies of these definitions share a slot from now on."""
        self._by_name.update((name, WHOLE // most) for name, most in per_slot.items())

    @property
    def size(self) -> int:
        """How many bodies like the latest can run at once."""
        return self._capacity // self._latest

    @property
    def is_shared(self) -> bool:
        """Whether bodies that run here may have others beside them in their slot."""
        return self._latest < WHOLE

    @property
    def waiting(self) -> int:
        """How many jobs wait behind the running ones."""
        return len(self._held) - self.running

    @property
    def free(self) -> int:
        """How many more bodies like the latest could start at once."""
        if self._is_closed or self.waiting > 0:
            return 0
        return max(0, (self._capacity - self._load) // self._latest)

    def startable(self, jobs: Iterable[Job]) -> int:
        """Return how many of these would start at once, in turn."""
        count, load = 0, self._load
        if self._is_closed or self.waiting > 0:
            return 0
        for job in jobs:
            load += self._share(job)
            if load > self._capacity:
                break
            count += 1
        return count

    def close_for(self, job: Job) -> None:
        """Let nothing more start in shared slots if this job waits for more room."""
        self._is_closed = self._is_closed or self._share(job) > self._latest

    def add(self, jobs: list[Job], now: float) -> dict[int, int]:
        """Add jobs that the child gets now. Return the shares of those that share a slot."""
        shares = {}
        if self._by_name:
            shares = {job.lease_id: share for job in jobs if (share := self._share(job)) < WHOLE}
            self._shares.update(shares)
        self.fill(now)
        return shares

    def fill(self, now: float) -> None:
        """Record the start of all jobs for which there is room."""
        for job in islice(self._held.values(), self.running, None):
            share = self._shares.get(job.lease_id, WHOLE)
            if self._load + share > self._capacity:
                break
            self._load += share
            self._latest = share
            self.running += 1
            job.start(now)

    def remove(self, job: Job) -> None:
        """Remove a job that is no longer held."""
        share = self._shares.pop(job.lease_id, WHOLE)
        if job.started_at is not None:
            self.running -= 1
            self.release(share)

    def remove_all(self, jobs: list[Job]) -> None:
        """Remove several jobs before others start in their places."""
        if self._shares:
            for job in jobs:
                self.remove(job)
            return
        # A job whose start is not recorded yet has started and ended since the last look.
        started = sum(job.started_at is not None for job in jobs)
        if started:
            self.running -= started
            self.release(started * WHOLE)

    def release(self, share: int = WHOLE) -> None:
        """Free the room of a job that is no longer running."""
        self._load -= share
        if not self._load:
            self._latest, self._is_closed = WHOLE, False

    def leave_stuck(self) -> None:
        """Record that a job is no longer held, but keeps its slot."""
        self.running -= 1

    def _share(self, job: Job) -> int:
        return WHOLE if job.needs_whole_slot else self._by_name.get(job.name, WHOLE)
