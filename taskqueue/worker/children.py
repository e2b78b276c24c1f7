"""The parent's side of a child process."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from taskqueue.worker import frames
from taskqueue.worker.forks import ForkedProcess, Template
from taskqueue.worker.frames import Frame, Unpacker, pack
from taskqueue.worker.jobs import Job
from taskqueue.worker.places import Places
from taskqueue.worker.state import WorkerOptions
from taskqueue.worker.watchdog import ChildDeadline, Watchdog

READ_SIZE = 1 << 18


class ChildProcess:
    """A child with its orders, which start in the order in which they were sent.

    So the parent knows without asking which of them run. The others have not started, whatever
    happens to the child. Raises OSError if the system has no room for another process.
    """

    def __init__(
        self,
        options: WorkerOptions,
        *,
        slots: int,
        declares: bool,
        watchdog: Watchdog,
        presence: int | None = None,
        template: Template | None = None,
    ) -> None:
        setup = {
            "pool": options.pool,
            "slots": slots,
            "worker_name": options.name,
            "max_memory": options.max_memory,
            "declares": declares,
            "parent": os.getpid(),
        }
        forked = template and _forked(setup, presence, template)
        self.process: subprocess.Popen[bytes] | ForkedProcess
        self.socket, self.process = forked or _started_clean(setup, presence)
        self.socket.setblocking(False)
        self.slots = slots
        # Whether it writes the schedules that its code declares to the database.
        self.declares = declares
        self.is_ready = False
        # Takes no new orders, and is replaced once its running bodies have ended.
        self.is_condemned = False
        # Surplus since the number of slots was reduced.
        self.is_surplus = False
        self.is_killed = False
        self.is_exiting = False
        self.is_recalling = False
        self.is_blocked = False  # Its socket is full: frames wait until it reads.
        self.started = 0
        self.held: dict[int, Job] = {}
        self.places = Places(slots, self.held)
        # Jobs whose leases have ended while their bodies cannot be stopped: their slots stay busy.
        self.stuck: dict[int, Job] = {}
        self.files: list[str] = []
        self.trouble = ""
        self.deadline = ChildDeadline(self.process.pid, self.held, self.stuck, watchdog)
        self._unpacker = Unpacker()
        self._outgoing = bytearray()
        self._sending = threading.Lock()

    @property
    def is_leaving(self) -> bool:
        """Whether it takes no new orders, and ends with its running bodies."""
        return self.is_condemned or self.is_surplus

    @property
    def takes_orders(self) -> bool:
        """Whether orders may be sent to it."""
        return self.is_ready and not (self.is_leaving or self.is_killed or self.is_exiting)

    @property
    def is_idle(self) -> bool:
        """Whether it runs nothing, and could end normally."""
        return self.is_ready and not (self.is_killed or self.held or self.stuck)

    def running(self) -> Iterator[Job]:
        """The jobs whose bodies have started."""
        return islice(self.held.values(), self.places.running)

    def occupants(self) -> list[Job]:
        """Its jobs, including those whose bodies go on after their leases have ended."""
        return [*self.held.values(), *self.stuck.values()]

    def waiting(self) -> list[Job]:
        """The jobs that wait behind the running ones."""
        return list(islice(self.held.values(), self.places.running, None))

    def send_orders(self, jobs: list[Job], now: float) -> bool:
        """Send jobs to the child. If it is too late for one of them, send none and return False."""
        if not self.deadline.hold(jobs):
            return False
        self.started += len(jobs)
        shares = self.places.add(jobs, now)
        orders = [job.order for job in jobs]
        self.send((frames.RUN, orders, shares) if shares else (frames.RUN, orders))
        return True

    def recall(self) -> None:
        """Ask for the return of orders whose bodies have not started."""
        waiting = self.waiting()
        if waiting and not self.is_recalling:
            self.is_recalling = True
            self.send((frames.RECALL, [job.lease_id for job in waiting]))

    def recalled(self, lease_ids: list[int], now: float) -> list[Job]:
        """Take these returned orders back: their bodies have not started."""
        self.is_recalling = False
        jobs = [self.held.pop(lease_id) for lease_id in lease_ids if lease_id in self.held]
        for job in jobs:
            self.places.remove(job)
            job.unstart()
        self.places.fill(now)
        self.started -= len(jobs)
        return jobs

    def take_back(self, lease_id: int, now: float) -> Job | None:
        """Remove a job from the child, so that the next one in line has started. Return the job."""
        job = self.held.pop(lease_id, None)
        if job is not None:
            self.places.remove(job)
        elif job := self.stuck.pop(lease_id, None):
            self.places.release()
        self.places.fill(now)
        return job

    def take_back_all(self, lease_ids: list[int], now: float) -> list[Job | None]:
        """Remove jobs, each as `take_back` does; the next ones in line have started."""
        jobs = [self.held.pop(lease_id, None) for lease_id in lease_ids]
        self.places.remove_all([job for job in jobs if job is not None])
        if None in jobs and self.stuck:
            for place, lease_id in enumerate(lease_ids):
                if jobs[place] is None and (stuck := self.stuck.pop(lease_id, None)):
                    jobs[place] = stuck
                    self.places.release()
        self.places.fill(now)
        return jobs

    def leave_stuck(self, lease_id: int) -> None:
        """Record that the lease of a body that cannot be stopped has ended."""
        job = self.held.pop(lease_id, None)
        if job is not None:
            self.places.leave_stuck()
            self.stuck[lease_id] = job
            self.is_condemned = True

    def send(self, *own: Frame) -> None:
        """Send earlier frames and these. Keep what the child does not read yet.

        Never blocks. Any thread may call this.
        """
        with self._sending:
            self._outgoing += b"".join(map(pack, own))
            try:
                while self._outgoing:
                    del self._outgoing[: self.socket.send(self._outgoing)]
            except BlockingIOError:
                pass
            except OSError:
                self._outgoing.clear()

    @property
    def has_outgoing(self) -> bool:
        """Whether frames wait to be sent."""
        return bool(self._outgoing)

    def receive(self) -> tuple[list[Frame], bool]:
        """Return the frames of the child that have arrived, and whether the child is gone."""
        received: list[Frame] = []
        while True:
            try:
                data = self.socket.recv(READ_SIZE)
            except BlockingIOError:
                return received, False
            except OSError:
                return received, True
            if not data:
                return received, True
            received.extend(self._unpacker.feed(data))
            if len(data) < READ_SIZE:
                return received, False

    def kill(self) -> None:
        """Kill the child and the processes that it started."""
        self.is_killed = True
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()

    def await_exit(self, seconds: float) -> None:
        """Wait for the requested end of the child, for at most `seconds`.

        The child is not reaped yet, so its process id and process group still belong to it.
        """
        ends_at = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            while (left := ends_at - time.monotonic()) > 0:
                if selector.select(left) and self.receive()[1]:
                    return

    def bury(self) -> int:
        """Reap a child that is gone, and return its exit code."""
        self.socket.close()
        self.deadline.end()
        try:
            return self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.wait()


def _forked(
    setup: dict[str, Any], presence: int | None, template: Template
) -> tuple[socket.socket, ForkedProcess] | None:
    """Return our end of the socket, and a copy of the template; None if there is no template."""
    ours, theirs = socket.socketpair()
    with theirs:
        files = [theirs.fileno(), *([] if presence is None else [presence])]
        try:
            process = template.fork(setup, files)
        except OSError:
            ours.close()
            raise
    if process is None:
        # A copy that is made too late finds the other end closed, and ends.
        ours.close()
        return None
    return ours, process


def _started_clean(
    setup: dict[str, Any], presence: int | None
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Return our end of the socket, and a process that imports the project itself."""
    ours, theirs = socket.socketpair()
    own = {
        "socket": theirs.fileno(),
        "presence": presence,
        "path": sys.path,
        "argv0": sys.argv[0],
    }
    with theirs:
        try:
            return ours, subprocess.Popen(
                [sys.executable, "-m", "taskqueue.worker.child"],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *([] if presence is None else [presence])],
                env={**os.environ, "TASKQUEUE_CHILD": json.dumps({**setup, **own})},
                # The parent handles signals of the terminal.
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise


def describe_exit(code: int) -> str:
    """Describe in words how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
