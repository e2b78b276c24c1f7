"""The pool: children, what runs in them, what waits for them. Touches no database."""

from __future__ import annotations

import logging
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator

from taskqueue.conf import Settings
from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Outcome, OutcomeKind
from taskqueue.worker import endings, frames
from taskqueue.worker.children import NEAR, ChildProcess, describe_exit
from taskqueue.worker.jobs import Job
from taskqueue.worker.logs import log_ended, note_logged
from taskqueue.worker.meter import Meter, Standing
from taskqueue.worker.options import WorkerOptions
from taskqueue.worker.pending_writes import PendingWrites
from taskqueue.worker.prefetch import Prefetch
from taskqueue.worker.watchdog import Watchdog

logger = logging.getLogger("taskqueue.worker")

STALL = 0.05
"""Seconds after which orders behind a running body go to an idle child."""
LONG_STALL = 1.0
"""Seconds after which they go back to the database."""
SHORTEST_RESPAWN, LONGEST_RESPAWN = 0.5, 30.0
BROKEN_AFTER = 3
ORDERS_A_FRAME = 64
LONGEST_EXIT = 5.0
"""Seconds for idle children to end in; they give themselves less."""


class Pool:
    """Children and their jobs.

    What it learns it leaves in `pending`, for the ledger to write.
    """

    def __init__(
        self,
        options: WorkerOptions,
        settings: Settings,
        watchdog: Watchdog,
        meter: Meter | None = None,
    ) -> None:
        self._options = options
        self._watchdog = watchdog
        self.meter = meter or Meter()
        self.can_kill = options.pool == "process"
        """Whether a body can be killed without its siblings."""
        self.children: list[ChildProcess] = []
        self.backlog: deque[Job] = deque()
        self.pending = PendingWrites()
        self.ahead = Prefetch(settings.CLAIM_AHEAD)
        self.trouble = ""
        self._failed_starts = 0
        self._respawn_at = 0.0
        self.has_declared = False
        """Whether a child has brought what its code declares to the database."""
        self.presence: int | None = None
        """The file that children hold locked, as this process does."""
        self.is_closing = False
        self.is_quiet = False
        """Whether it finishes what runs, and stays."""

    # Children

    @property
    def _wanted_children(self) -> int:
        return self._options.concurrency if self.can_kill else 1

    @property
    def _lacks_declarer(self) -> bool:
        """Whether no child has declared its schedules, and none is about to."""
        return not self.has_declared and not any(
            child.declares and not child.is_condemned for child in self.children
        )

    def populate(self, now: float) -> list[ChildProcess]:
        """Start the children that are missing; the new ones."""
        if self.is_closing or now < self._respawn_at:
            return []
        born = []
        while len(self.children) < self._wanted_children:
            child = ChildProcess(
                pool=self._options.pool,
                slots=1 if self.can_kill else self._options.concurrency,
                worker_name=self._options.name,
                max_memory=self._options.max_memory,
                declares=self._lacks_declarer,
                watchdog=self._watchdog,
                presence=self.presence,
            )
            self.meter.children_started += 1
            self.children.append(child)
            born.append(child)
        return born

    @property
    def is_broken(self) -> bool:
        """Whether children have failed to start several times in a row."""
        return self._failed_starts >= BROKEN_AFTER

    @property
    def is_ready(self) -> bool:
        """Whether some child takes orders."""
        return any(child.takes_orders for child in self.children)

    @property
    def respawn_at(self) -> float | None:
        """When missing children are started, if any are missing."""
        missing = len(self.children) < self._wanted_children and not self.is_closing
        return self._respawn_at if missing else None

    def recycle(self) -> None:
        """Replace every child once what runs in it has ended."""
        self.has_declared = False
        for child in self.children:
            child.is_condemned = True
            self.recall(child)
        self.retire(time.monotonic())

    def retire(self, now: float) -> None:
        """Let condemned children go that have nothing left to run."""
        for child in self.children:
            if child.is_condemned and not child.held and not child.is_exiting:
                if child.stuck or not child.is_ready:
                    child.kill()
                else:
                    child.send((frames.EXIT,))
                child.is_exiting = True

    # Capacity

    @property
    def held(self) -> int:
        """How many jobs are here."""
        return len(self.backlog) + sum(len(child.held) for child in self.children)

    @property
    def has_free_slot(self) -> bool:
        """Whether a body could start at once."""
        return any(child.takes_orders and child.free_slots for child in self.children)

    @property
    def takes_more(self) -> bool:
        """Whether anything may be claimed, or started."""
        return not (self.is_closing or self.is_quiet)

    def wanted(self, now: float) -> int:
        """How many more tasks to claim."""
        ready = [child for child in self.children if child.takes_orders]
        slots = sum(child.slots - len(child.stuck) for child in ready)
        if not slots or not self.takes_more or not self._watchdog.is_there:
            return 0
        if any(job.needs_own_child for job in self.backlog):
            return 0
        free = sum(child.free_slots for child in ready)
        stalled = self._longest_running(ready, now)
        reserve = self.ahead.reserve(slots, stalled)
        waiting = len(self.backlog) + sum(max(0, len(child.held) - child.slots) for child in ready)
        return max(0, free + reserve - waiting)

    @staticmethod
    def _longest_running(children: list[ChildProcess], now: float) -> float:
        heads = (next(child.running(), None) for child in children)
        return max((now - job.started_at for job in heads if job and job.started_at), default=0.0)

    def standing(self) -> Standing:
        """How it stands, asked by any thread: lengths alone, for what is counted may change."""
        children = list(self.children)
        return Standing(
            slots=self._options.concurrency,
            busy=sum(min(len(each.held) + len(each.stuck), each.slots) for each in children),
            held=self.held,
            pids=tuple(each.process.pid for each in children),
        )

    # Orders

    def add(self, jobs: list[Job]) -> None:
        """Take claimed jobs."""
        self.backlog.extend(jobs)

    def dispatch(self, now: float) -> None:
        """Hand waiting jobs to children: first one for each free slot, then behind them."""
        if not self.backlog:
            return
        ready = [child for child in self.children if child.takes_orders]
        ready.sort(key=lambda child: len(child.held))
        for child in ready:
            self._hand(child, child.free_slots, now)
        patient = [
            child
            for child in ready
            if self._longest_running([child], now) <= STALL
            and not any(job.needs_own_child for job in child.held.values())
        ]
        for number, child in enumerate(patient):
            share = -(-len(self.backlog) // (len(patient) - number))
            room = child.slots + self.ahead.depth(child.slots) - len(child.held) - len(child.stuck)
            self._hand(child, min(room, share), now)

    def _hand(self, child: ChildProcess, room: int, now: float) -> None:
        room = min(room, self._tasks_left(child))
        jobs: list[Job] = []
        while self.backlog and len(jobs) < room:
            if self.backlog[0].needs_own_child and (jobs or child.held):
                break
            job = self.backlog.popleft()
            if time.monotonic() >= job.safe_until:
                # Its claim was answered late, or this process was frozen: others may have it.
                self.hand_back(job)
                continue
            jobs.append(job)
            if job.needs_own_child:
                break
        for start in range(0, len(jobs), ORDERS_A_FRAME):
            batch = jobs[start : start + ORDERS_A_FRAME]
            if not child.send_orders(batch, now):
                for job in batch:
                    self.hand_back(job)
        if jobs and self._tasks_left(child) <= 0:
            child.is_condemned = True

    def _tasks_left(self, child: ChildProcess) -> int:
        if self._options.max_tasks is None:
            return 1_000_000
        return self._options.max_tasks - child.started

    def rebalance(self, now: float) -> None:
        """Call back orders that stand behind a body which takes its time."""
        idle = any(child.takes_orders and not child.held for child in self.children)
        for child in self.children:
            if child.is_recalling or len(child.held) <= child.slots - len(child.stuck):
                continue
            head = next(child.running(), None)
            since = head.started_at if head else None
            stalled = now - since if since is not None else LONG_STALL
            if stalled > LONG_STALL or (idle and stalled > STALL):
                self.recall(child)
        while self.backlog and now - self.backlog[0].claimed_at > LONG_STALL:
            if self.has_free_slot and not self.backlog[0].needs_own_child:
                break
            self.hand_back(self.backlog.popleft())

    def recall(self, child: ChildProcess) -> None:
        """Call back what has not started in a child."""
        waiting = child.waiting()
        if waiting and not child.is_recalling:
            child.is_recalling = True
            child.send((frames.RECALL, [job.lease_id for job in waiting]))

    def hand_back(self, job: Job) -> None:
        """Return a job whose body never started."""
        if not job.is_over:
            self.pending.outcomes.append(endings.unstarted(job, time.monotonic()))

    def hand_back_backlog(self) -> None:
        """Return what waits for a child."""
        while self.backlog:
            self.hand_back(self.backlog.popleft())

    def hand_back_waiting(self) -> None:
        """Return everything that has not started."""
        self.hand_back_backlog()
        for child in self.children:
            self.recall(child)

    # What children say

    def receive(
        self, child: ChildProcess, now: float, forget: Callable[[socket.socket], None]
    ) -> bool:
        """Take in what a child has said; False once it is gone, and its socket forgotten."""
        received, is_gone = child.receive()
        for frame in received:
            self._take(child, frame, now)
        if is_gone:
            forget(child.socket)
            self._bury(child, now)
        return not is_gone

    def _take(self, child: ChildProcess, frame: frames.Frame, now: float) -> None:
        kind, pending = frame[0], self.pending
        if kind == frames.OUTCOME:
            self._finish(child, Outcome._make(frame[1]), now)
        elif kind in (frames.RECORDED, frames.UNSURE):
            job = child.take_back(frame[1], now)
            if job is not None:
                if kind == frames.RECORDED:
                    self.meter.recorded_itself(job, started_at=frame[2], ended_at=frame[3])
                    log_ended(job, "succeeded", "succeeded", seconds=frame[3] - frame[2])
                    pending.recorded.append(frame[1])
                else:
                    pending.unsure[frame[1]] = frame[2], frame[3]
                self.ahead.learn(frame[3] - frame[2])
        elif kind == frames.PROGRESS:
            pending.progress.update((lease, (done, text)) for lease, done, text in frame[1])
        elif kind == frames.LINES:
            pending.lines.extend(frame[1])
        elif kind == frames.RECALLED:
            self._recalled(child, frame[1], now)
        elif kind == frames.READY:
            child.is_ready, child.files = True, frame[1]
            self._failed_starts, self.trouble = 0, ""
        elif kind == frames.SYNCED:
            self.has_declared = True
        elif kind == frames.OVERWEIGHT:
            child.is_condemned = True
            self.recall(child)
        elif kind == frames.BROKEN:
            child.trouble = frame[1]

    def _finish(self, child: ChildProcess, outcome: Outcome, now: float) -> None:
        job = child.take_back(outcome.lease_id, now)
        if job is None or job.is_over:
            return
        if outcome.kind == OutcomeKind.FAILED:
            note_logged(job, outcome)
        if outcome.started is not None:
            self.ahead.learn(outcome.ended - outcome.started)
        if outcome.kind == OutcomeKind.PARKED:
            if self.pending.learn_unknown(job.name, now):
                logger.warning(
                    "Task parked for a worker that knows it task=%s id=%s reason=%s",
                    one_line(job.name), job.task_id, one_line(outcome.error_message),
                )  # fmt: skip
        elif job.stop_reason and outcome.kind in (OutcomeKind.SUCCEEDED, OutcomeKind.RETURNED):
            # The stop was seen: the success no longer counts, and an atomic body was undone.
            outcome = outcome._replace(
                kind=OutcomeKind.STOPPED, return_value=None, error_message=""
            )
        if outcome.kind == OutcomeKind.STOPPED and job.stop_reason and not outcome.error_message:
            outcome = outcome._replace(error_message=job.stop_reason)
        self.pending.outcomes.append(outcome)

    def _recalled(self, child: ChildProcess, lease_ids: list[int], now: float) -> None:
        child.is_recalling = False
        jobs = [child.held.pop(lease_id) for lease_id in lease_ids if lease_id in child.held]
        for job in jobs:
            job.unstart()
        child.started -= len(jobs)
        self._take_up(jobs)

    def _take_up(self, jobs: list[Job]) -> None:
        """Jobs came back from a child without having started."""
        going_on = []
        for job in jobs:
            if not self.takes_more or job.stop_reason is not None:
                self.hand_back(job)
            elif not job.is_over:
                going_on.append(job)
        self.backlog.extendleft(reversed(going_on))

    def _bury(self, child: ChildProcess, now: float) -> None:
        """A child is gone: what ran in it is lost, what waited in it goes on."""
        end = describe_exit(child.bury())
        self.children.remove(child)
        running = [job for job in child.running() if not job.is_over]
        is_fenced = now >= child.deadline and not child.is_killed
        self.pending.outcomes += [
            endings.fenced(job, now) if is_fenced else endings.lost(job, now, end=end)
            for job in running
        ]
        self._take_up(child.waiting())
        if child.is_killed or child.is_exiting:
            return
        self.meter.children_crashed += 1
        if not child.is_ready:
            self._failed_to_start(child, end, now)
        elif running:
            # Each task that was lost is logged on its own, as an error where it fails.
            logger.warning(
                "Child died pid=%s end=%s running=%s",
                child.process.pid, end, [job.task_id for job in running],
            )  # fmt: skip

    def _failed_to_start(self, child: ChildProcess, end: str, now: float) -> None:
        self._failed_starts += 1
        delay = min(LONGEST_RESPAWN, SHORTEST_RESPAWN * 2 ** (self._failed_starts - 1))
        self._respawn_at = now + delay
        self.trouble = f"Children do not start ({end}): {child.trouble}"[-4000:]
        logger.error("Child did not start end=%s retry_in=%.1fs %s", end, delay, child.trouble)

    def end(self) -> None:
        """End all children: what runs at once, the others in order, for as long as that may take.

        An idle child sends what error reporting has not sent yet, for example.
        """
        idle = [child for child in self.children if child.is_idle]
        for child in self.children:
            if child not in idle:
                child.kill()
            elif not child.is_exiting:
                child.send((frames.EXIT,))
        ends_at = time.monotonic() + LONGEST_EXIT
        for child in idle:
            child.await_exit(ends_at - time.monotonic())
        for child in self.children:
            child.kill()
            child.bury()

    def relax(self, now: float) -> None:
        """Let children live on whose deadline was that of a job which has ended since."""
        for child in self.children:
            child.relax(now)

    def next_deadline(self, now: float) -> float | None:
        """When `relax` is needed next."""
        moments = (child.deadline - NEAR for child in self.children)
        return min((moment for moment in moments if moment > now), default=None)

    # Looking

    def running(self) -> Iterator[Job]:
        """The jobs whose bodies have started."""
        for child in self.children:
            yield from child.running()

    def find(self, lease_id: int) -> tuple[ChildProcess | None, Job] | None:
        """The job of a lease, and the child that has it, if it is here."""
        for child in self.children:
            if job := child.held.get(lease_id):
                return child, job
        return next(((None, job) for job in self.backlog if job.lease_id == lease_id), None)

    def suspect_connections(self) -> None:
        """The database was away: children look at their connections before they use them."""
        for child in self.children:
            child.send((frames.SUSPECT,))
