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
from taskqueue.worker.frames import Frame, Unpacker, pack
from taskqueue.worker.jobs import Job
from taskqueue.worker.watchdog import Watchdog

READ_SIZE = 1 << 18
NEVER = float("inf")
"""The deadline of a child that holds nothing."""
NEAR = 1.0
"""Seconds before a deadline, at which it is looked at whether it has to be kept."""


class ChildProcess:
    """A child with its orders. Orders start in the order in which they were sent.

    So what runs in it is known without asking: of those it holds, the first as many as it has
    slots. What stands behind them has not started, whatever happens to the child.
    """

    def __init__(
        self,
        *,
        pool: str,
        slots: int,
        worker_name: str,
        max_memory: float | None,
        declares: bool,
        watchdog: Watchdog,
        presence: int | None = None,
    ) -> None:
        ours, theirs = socket.socketpair()
        setup = {
            "pool": pool,
            "slots": slots,
            "worker_name": worker_name,
            "max_memory": max_memory,
            "declares": declares,
            "socket": theirs.fileno(),
            "presence": presence,
            "parent": os.getpid(),
            "path": sys.path,
            "argv0": sys.argv[0],
        }
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "taskqueue.worker.child"],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), *([] if presence is None else [presence])],
                env=_environment(setup),
                # Signals of the terminal are the parent's to answer.
                start_new_session=True,
            )
        ours.setblocking(False)
        self.socket = ours
        self.slots = slots
        self.pool = pool
        self.declares = declares
        """Whether it brings what its code declares to the database."""
        self.is_ready = False
        self.is_condemned = False
        """Takes nothing new, and is replaced once what runs in it has ended."""
        self.is_killed = False
        self.is_exiting = False
        self.is_recalling = False
        self.is_blocked = False
        """Its socket is full: what is sent waits until it reads."""
        self.started = 0
        self.held: dict[int, Job] = {}
        self.stuck: dict[int, Job] = {}
        """Jobs whose lease has ended while their body cannot be stopped: their slots stay busy."""
        self.files: list[str] = []
        self.trouble = ""
        self.born_at = time.monotonic()
        self.deadline = NEVER
        self._bounding = threading.Lock()
        self._is_buried = False
        self._watchdog = watchdog
        watchdog.live_until(self.process.pid, self.deadline)
        self._unpacker = Unpacker()
        self._outgoing = bytearray()
        self._sending = threading.Lock()

    def fileno(self) -> int:
        """The socket, for a selector."""
        return self.socket.fileno()

    @property
    def takes_orders(self) -> bool:
        """Whether anything may be sent to it."""
        return self.is_ready and not (self.is_condemned or self.is_killed or self.is_exiting)

    @property
    def is_idle(self) -> bool:
        """Whether it runs nothing, and could end by itself."""
        return self.is_ready and not (self.is_killed or self.held or self.stuck)

    @property
    def free_slots(self) -> int:
        """How many bodies could start in it at once."""
        return max(0, self.slots - len(self.stuck) - len(self.held))

    def running(self) -> Iterator[Job]:
        """The jobs whose bodies have started."""
        return islice(self.held.values(), self.slots - len(self.stuck))

    def waiting(self) -> list[Job]:
        """The jobs that stand behind them."""
        return list(islice(self.held.values(), self.slots - len(self.stuck), None))

    def send_orders(self, jobs: list[Job], now: float) -> bool:
        """Hand jobs to the child; False if it is too late for one of them, and none was handed.

        The guardian knows until when they are safe before the child knows of them. Where this
        process is frozen on the way, the guardian acts, or the second look at the clock sees it.
        """
        free = self.slots - len(self.stuck) - len(self.held)
        safe_until = min(job.safe_until for job in jobs)
        with self._bounding:
            if time.monotonic() >= safe_until:
                return False
            self._bound(min(self.deadline, safe_until))
            if time.monotonic() >= safe_until:
                return False
            for job in jobs:
                self.held[job.lease_id] = job
        for job in jobs[: max(0, free)]:
            job.start(now)
        self.started += len(jobs)
        self.send((frames.RUN, [job.order for job in jobs]))
        return True

    def take_back(self, lease_id: int, now: float) -> Job | None:
        """A job is no longer with the child; the next one in line has started."""
        job = self.held.pop(lease_id, None) or self.stuck.pop(lease_id, None)
        if job is not None:
            place = self.slots - len(self.stuck) - 1
            follower = next(islice(self.held.values(), max(0, place), None), None)
            if follower is not None and follower.started_at is None:
                follower.start(now)
        return job

    def leave_stuck(self, lease_id: int) -> None:
        """The lease of a body that cannot be stopped has ended."""
        job = self.held.pop(lease_id, None)
        if job is not None:
            self.stuck[lease_id] = job
            self.is_condemned = True

    def send(self, frame: Frame) -> None:
        """Send, or keep until the child reads; never blocks. Any thread may call it."""
        with self._sending:
            self._outgoing += pack(frame)
            self._push()

    def push(self) -> bool:
        """Send what was kept; whether something is left."""
        with self._sending:
            self._push()
            return bool(self._outgoing)

    @property
    def has_outgoing(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._outgoing)

    def _push(self) -> None:
        try:
            while self._outgoing:
                sent = self.socket.send(self._outgoing)
                del self._outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()

    def receive(self) -> tuple[list[Frame], bool]:
        """What the child has said, and whether it is gone."""
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

    def pulse(self, deadline: float) -> None:
        """Let the child live until that moment, as far as what it holds allows.

        One that holds nothing can harm nobody, and lives as long as its parent. Past its last
        moment a child is being killed. The main thread and that of the heartbeat may call it.
        """
        with self._bounding:
            if self.held or self.stuck:
                self._bound(min(deadline, self._safe_until()))
            else:
                self._bound(NEVER)

    def relax(self, now: float) -> None:
        """Let a child live on whose deadline is near, and that of a job which has ended since."""
        if self.deadline - now < NEAR and not self.stuck:
            with self._bounding:
                self._bound(self._safe_until())

    def _safe_until(self) -> float:
        return min((job.safe_until for job in list(self.held.values())), default=NEVER)

    def _bound(self, deadline: float) -> None:
        if time.monotonic() < self.deadline != deadline and not self._is_buried:
            self.deadline = deadline
            self._watchdog.live_until(self.process.pid, deadline)

    def kill(self) -> None:
        """End the child and what it started, at once."""
        self.is_killed = True
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()

    def await_exit(self, seconds: float) -> None:
        """Wait for its end, which it was asked for; for so long at most.

        It is not buried: until then its number, and that of its group, are nobody else's.
        """
        ends_at = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            while (left := ends_at - time.monotonic()) > 0:
                if selector.select(left) and self.receive()[1]:
                    return

    def bury(self) -> int:
        """Wait for the end of a child that is gone; how it ended."""
        self.socket.close()
        with self._bounding:
            # Its number may soon be another's, and the heartbeat may still know of it.
            self._is_buried = True
        self._watchdog.forget(self.process.pid)
        try:
            return self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.wait()


def _environment(setup: dict[str, Any]) -> dict[str, str]:
    return {**os.environ, "TASKQUEUE_CHILD": json.dumps(setup)}


def describe_exit(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
