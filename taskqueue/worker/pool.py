"""Start, replace and end the children of a worker. It uses no database."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from taskqueue.core.log_text import one_line
from taskqueue.worker import frames
from taskqueue.worker.children import ChildProcess, describe_exit
from taskqueue.worker.forks import Template
from taskqueue.worker.jobs import Job
from taskqueue.worker.state import WorkerState
from taskqueue.worker.watchdog import NEAR, Watchdog

logger = logging.getLogger("taskqueue.worker")

SHORTEST_RESPAWN, LONGEST_RESPAWN = 0.5, 30.0
BROKEN_AFTER = 3
PLENTY = 32  # The orders behind the running bodies of a child that has enough to do.
# Seconds after which the next copy of the template is made; sooner if the last one takes orders.
NEXT_COPY, LONGEST_BEGIN = 0.002, 0.05
LONGEST_EXIT = 5.0  # Seconds for idle children to end in; they give themselves less.


class Pool:
    """The children of a worker, and when missing ones are started."""

    def __init__(
        self, state: WorkerState, watchdog: Watchdog, template: Template | None = None
    ) -> None:
        self._state = state
        self._options = state.options
        self._meter = state.meter
        self._watchdog = watchdog
        self.template = template or Template()
        # Whether a body can be killed without its siblings.
        self.can_kill = state.options.pool == "process"
        self.children: list[ChildProcess] = []
        self.trouble = ""
        # Whether a child has written the declared schedules to the database.
        self.has_declared = False
        self._failed_starts = 0
        self._respawn_at = 0.0
        self._next_copy_at = 0.0

    # Looking

    @property
    def _size(self) -> int:
        """How many children there should be."""
        return self._state.concurrency if self.can_kill else 1

    @property
    def staying(self) -> list[ChildProcess]:
        """The children that are not surplus since the number of slots was changed."""
        return [child for child in self.children if not child.is_surplus]

    @property
    def ready(self) -> list[ChildProcess]:
        """The children that take orders."""
        if self._excess > 0:
            return []
        return [child for child in self.children if child.takes_orders]

    @property
    def _excess(self) -> int:
        """How many children there are beyond the number of slots."""
        return len(self.staying) - self._size

    @property
    def leaving(self) -> int:
        """How many bodies take slots in surplus children."""
        return sum(len(child.occupants()) for child in self.children if child.is_surplus)

    @property
    def has_plenty(self) -> bool:
        """Whether each child has enough to do for some milliseconds."""
        return all(child.places.waiting > PLENTY for child in self.children)

    @property
    def held(self) -> int:
        """How many jobs the children hold."""
        return sum(len(child.held) for child in self.children)

    def process_ids(self) -> list[int]:
        """The processes of the children; any thread may ask."""
        return [child.process.pid for child in list(self.children)]

    @property
    def is_guarded(self) -> bool:
        """Whether there is a guardian, as far as is known."""
        return self._watchdog.is_there

    @property
    def is_broken(self) -> bool:
        """Whether children have failed to start several times in a row."""
        return self._failed_starts >= BROKEN_AFTER

    @property
    def respawn_at(self) -> float | None:
        """When missing children are started, if any are missing and need not wait for others."""
        missing = len(self.staying) < self._size and not self._state.is_stopping
        if not missing or self.template.is_loading:
            return None
        next_at = self._next_copy_at if self.template.makes_copies else 0.0
        return max(self._respawn_at, next_at)

    def running(self) -> Iterator[Job]:
        """The jobs whose bodies have started."""
        for child in self.children:
            yield from child.running()

    @property
    def ahead(self) -> int:
        """How many jobs wait with children for others to end."""
        return sum(child.places.waiting for child in self.children)

    # Starting

    def populate(self, now: float) -> list[ChildProcess]:
        """Start the children that are missing, and return them."""
        if self._state.is_stopping or now < self._respawn_at:
            return []
        started: list[ChildProcess] = []
        while len(self.staying) < self._size and not self._must_wait(now):
            try:
                child = self._started()
            except OSError as error:
                # Running bodies go on.
                self.trouble = f"Children do not start: {error}"
                delay = self._put_off_starts(now)
                logger.error("Child not started retry_in=%.1fs error=%s", delay, one_line(error))
                break
            self._meter.children_started += 1
            self.children.append(child)
            started.append(child)
            self._next_copy_at = now + LONGEST_BEGIN
        return started

    def _started(self) -> ChildProcess:
        return ChildProcess(
            self._options,
            slots=1 if self.can_kill else self._state.concurrency,
            declares=self._lacks_declarer,
            watchdog=self._watchdog,
            presence=self._state.presence,
            template=self.template,
        )

    def _put_off_starts(self, now: float) -> float:
        """Put the next start off, the longer the more have failed. Return for how many seconds."""
        self._failed_starts += 1
        delay: float = min(LONGEST_RESPAWN, SHORTEST_RESPAWN * 2 ** (self._failed_starts - 1))
        self._respawn_at = now + delay
        return delay

    def _must_wait(self, now: float) -> bool:
        """Return whether the template is still loading, or has just made a copy.

        The worker waits while a copy is made, and before that it claims for the last one.
        """
        is_early = self.template.makes_copies and now < self._next_copy_at
        return self.template.is_loading or is_early

    @property
    def _lacks_declarer(self) -> bool:
        """Whether no child has declared its schedules, and none is about to."""
        return not self.has_declared and not any(
            child.declares and not child.is_leaving for child in self.children
        )

    def on_started(self, child: ChildProcess, files: list[str]) -> None:
        """Record that a child takes orders; it has imported these files."""
        child.is_ready, child.files = True, files
        self._next_copy_at = time.monotonic() + NEXT_COPY
        self._failed_starts, self.trouble = 0, ""

    # Ending

    def recycle(self) -> None:
        """Replace every child once its running bodies have ended."""
        self.has_declared = False
        for child in self.children:
            child.is_condemned = True
            child.recall()
        self.retire()

    def resize(self) -> None:
        """Fit the children to the number of slots; `populate` starts missing ones.

        If there are too many, none takes new orders until enough of them have nothing left to run,
        and end. A thread pool gets a new child; the old one ends with its bodies.
        """
        for child in self.children:
            if not self.can_kill:
                child.is_surplus = child.slots != self._state.concurrency
            elif not child.is_exiting:
                child.is_surplus = False
            if child.is_surplus or self._excess > 0:
                child.recall()
        self.retire()

    def retire(self) -> None:
        """End condemned and surplus children that have nothing left to run."""
        for child in self.children:
            if self._excess > 0 and not child.held:
                child.is_surplus = True
        for child in self.children:
            if child.is_leaving and not child.held and not child.is_exiting:
                if child.stuck or not child.is_ready:
                    child.kill()
                else:
                    child.send((frames.EXIT,))
                child.is_exiting = True

    def bury(self, child: ChildProcess, running: list[Job], now: float) -> str:
        """Remove a child that is gone, with its running jobs, and return how it ended."""
        end = describe_exit(child.bury())
        self.children.remove(child)
        if child.is_killed or child.is_exiting:
            return end
        self._meter.children_crashed += 1
        if not child.is_ready:
            self._failed_to_start(child, end, now)
        elif running:
            # Each lost task is logged separately, as an error if it fails.
            logger.warning(
                "Child died pid=%s end=%s running=%s",
                child.process.pid, end, [job.task_id for job in running],
            )  # fmt: skip
        return end

    def _failed_to_start(self, child: ChildProcess, end: str, now: float) -> None:
        delay = self._put_off_starts(now)
        self.trouble = f"Children do not start ({end}): {child.trouble}"[-4000:]
        logger.error("Child did not start end=%s retry_in=%.1fs %s", end, delay, child.trouble)

    def end(self) -> None:
        """End all children: busy ones at once, idle ones normally, within a bounded time.

        An idle child may, for example, have to send reported errors.
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

    # Living on

    def relax(self, now: float) -> None:
        """Extend the deadlines of children that were set for jobs which have ended since."""
        for child in self.children:
            child.deadline.relax(now)

    def next_deadline(self, now: float) -> float | None:
        """Return when `relax` is needed next."""
        moments = (child.deadline.at - NEAR for child in self.children)
        return min((moment for moment in moments if moment > now), default=None)
