"""Dispatch jobs to children, and take back those that were not started."""

from __future__ import annotations

import math
import time
from collections import deque

from taskqueue.worker import endings
from taskqueue.worker.children import ChildProcess
from taskqueue.worker.jobs import Job
from taskqueue.worker.leases import PendingWrites
from taskqueue.worker.limits import NO_LIMITS, Room
from taskqueue.worker.meter import Occupancy
from taskqueue.worker.pool import Pool
from taskqueue.worker.prefetch import Prefetch
from taskqueue.worker.state import WorkerState

STALL = 0.05  # Seconds after which orders behind a running body go to an idle child.
LONG_STALL = 1.0  # Seconds after which they are returned to the database.
ORDERS_A_FRAME = 64


class Dispatcher:
    """Sends jobs to children: first one for each free slot, then more behind the running ones."""

    def __init__(self, state: WorkerState, pool: Pool) -> None:
        self._max_tasks = state.options.max_tasks or math.inf
        self.state = state
        self.pool = pool
        self.pending = PendingWrites()
        self.prefetch = Prefetch(state.settings.CLAIM_AHEAD)
        self._backlog: deque[Job] = deque()

    # Capacity

    @property
    def held(self) -> int:
        """How many jobs wait here or are with children."""
        return len(self._backlog) + self.pool.held

    @property
    def has_waiting(self) -> bool:
        """Whether jobs wait, here or behind a running body."""
        return bool(self._backlog) or any(child.places.waiting for child in self.pool.children)

    def wanted(self, now: float) -> int:
        """Return how many more tasks to claim."""
        ready = self.pool.ready
        size = sum(child.places.size - len(child.stuck) for child in ready)
        if not size or not self.state.takes_tasks or not self.pool.is_guarded:
            return 0
        if any(job.needs_own_child for job in self._backlog):
            return 0
        # A job that waits here may need a whole slot, so nothing more is claimed for a share of
        # one.
        free = sum(
            child.places.free for child in ready if not (self._backlog and child.places.is_shared)
        )
        reserve = self.prefetch.reserve(size, _longest_running(ready, now))
        waiting = len(self._backlog) + sum(child.places.waiting for child in ready)
        return max(0, free + reserve - waiting - self.pool.leaving)

    def room(self) -> Room:
        """Return how many more tasks of limited queues and definitions may be claimed.

        Bodies that cannot be stopped count until they have ended.
        """
        if not self.state.limits:
            return NO_LIMITS
        held = [job for child in self.pool.children for job in child.occupants()]
        return self.state.limits.room([*self._backlog, *held])

    @property
    def free(self) -> int:
        """How many slots are free, with no job waiting for them."""
        waiting = len(self._backlog) + sum(child.places.waiting for child in self.pool.ready)
        return max(0, sum(child.places.free for child in self.pool.ready) - waiting)

    def occupancy(self) -> Occupancy:
        """Return how busy it is.

        Any thread may call this: only lengths are read, as the dicts may change.
        """
        children = list(self.pool.children)
        return Occupancy(
            slots=self.state.concurrency,
            busy=sum(min(len(child.held) + len(child.stuck), child.slots) for child in children),
            held=self.held,
            pids=tuple(self.pool.process_ids()),
        )

    def find(self, lease_id: int) -> tuple[ChildProcess | None, Job] | None:
        """Return the job of a lease, with the child that has it, if it is here."""
        for child in self.pool.children:
            if job := child.held.get(lease_id):
                return child, job
        return next(((None, job) for job in self._backlog if job.lease_id == lease_id), None)

    # To the children

    def add(self, jobs: list[Job]) -> None:
        """Add claimed jobs; hand them back if the worker must take no tasks any more."""
        self._backlog.extend(jobs)
        if not self.state.takes_tasks:
            self._hand_back_backlog()

    def dispatch(self, now: float) -> None:
        """Send waiting jobs to children: first one for each free slot, then more behind them."""
        if not self._backlog:
            return
        ready = sorted(self.pool.ready, key=lambda child: len(child.held))
        leaving = self.pool.leaving
        for child in ready:
            room = child.places.startable(self._backlog)
            self._hand(
                child, min(room, max(0, child.places.free - leaving)) if leaving else room, now
            )
        if leaving:
            return
        swift = [
            child
            for child in ready
            if _longest_running([child], now) <= STALL
            and not any(job.needs_own_child for job in child.held.values())
        ]
        for number, child in enumerate(swift):
            share = -(-len(self._backlog) // (len(swift) - number))
            size = child.places.size
            room = size + self.prefetch.depth(size) - len(child.held) - len(child.stuck)
            self._hand(child, min(room, share), now)

    def _hand(self, child: ChildProcess, room: int, now: float) -> None:
        jobs = self._next_jobs(child, min(room, self._max_tasks - child.started))
        for start in range(0, len(jobs), ORDERS_A_FRAME):
            batch = jobs[start : start + ORDERS_A_FRAME]
            if not child.send_orders(batch, now):
                for job in batch:
                    self.hand_back(job)
        if jobs and child.started >= self._max_tasks:
            child.is_condemned = True

    def _next_jobs(self, child: ChildProcess, room: float) -> list[Job]:
        jobs: list[Job] = []
        now = time.monotonic()
        while self._backlog and len(jobs) < room:
            if self._backlog[0].needs_own_child and (jobs or child.held):
                break
            job = self._backlog.popleft()
            if now >= job.safe_until:
                # Its claim was answered late, or this process was frozen: another worker may have
                # it.
                self.hand_back(job)
                continue
            jobs.append(job)
            if job.needs_own_child:
                break
        return jobs

    # Back from the children

    def rebalance(self, now: float) -> None:
        """Recall orders that wait behind a slow body."""
        children = self.pool.children
        is_one_idle = any(child.takes_orders and not child.held for child in children)
        for child in children:
            if child.is_recalling or not child.places.waiting:
                continue
            head = next(child.running(), None)
            since = head.started_at if head else None
            stalled = now - since if since is not None else LONG_STALL
            if stalled > LONG_STALL or (is_one_idle and stalled > STALL):
                child.recall()
        while self._backlog and now - self._backlog[0].claimed_at > LONG_STALL:
            first = self._backlog[0]
            ready = [] if self.pool.leaving else self.pool.ready
            has_room = any(child.places.startable([first]) for child in ready)
            if has_room and not first.needs_own_child:
                break
            for child in children:
                child.places.close_for(first)
            self.hand_back(self._backlog.popleft())

    def take_back(self, jobs: list[Job]) -> None:
        """Take jobs that came back from a child without having started."""
        waiting = []
        for job in jobs:
            if not self.state.takes_tasks or job.stop_reason is not None:
                self.hand_back(job)
            elif not job.is_over:
                waiting.append(job)
        self._backlog.extendleft(reversed(waiting))

    def remove(self, job: Job) -> None:
        """Remove a job that waits here."""
        self._backlog.remove(job)

    # Back to the database

    def hand_back(self, job: Job) -> None:
        """Return a job whose body never started."""
        if not job.is_over:
            self.pending.outcomes.append(endings.unstarted(job, time.monotonic()))

    def hand_back_waiting(self) -> None:
        """Return every job that has not started."""
        self._hand_back_backlog()
        for child in self.pool.children:
            child.recall()

    def end_all(self, now: float) -> None:
        """Return every job at once: kill running bodies, uncounted."""
        for child in list(self.pool.children):
            for job in child.running():
                if not job.is_over:
                    job.is_over = True
                    self.pending.outcomes.append(endings.interrupted(job, now))
            for job in child.waiting():
                self.hand_back(job)
            # A child without jobs may live, so first record the end, then kill.
            child.kill()
            child.held.clear()
        self._hand_back_backlog()

    def _hand_back_backlog(self) -> None:
        while self._backlog:
            self.hand_back(self._backlog.popleft())


def _longest_running(children: list[ChildProcess], now: float) -> float:
    heads = (next(child.running(), None) for child in children)
    return max((now - job.started_at for job in heads if job and job.started_at), default=0.0)
