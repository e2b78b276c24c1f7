"""A child process: takes orders from its parent, runs bodies, sends back their outcomes.

It is started clean, never forked from the parent, and shares nothing with it but a socket.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from taskqueue.worker import frames
from taskqueue.worker.frames import Unpacker, pack
from taskqueue.worker.memory import resident_megabytes
from taskqueue.worker.presence import hold_alone

EXIT_SECONDS = 3.0
"""Seconds that the functions registered with `atexit` may take."""
PARENT_DIED = 1  # PR_SET_PDEATHSIG


class Child:
    """The child's side of the pool."""

    def __init__(self, sock: socket.socket, *, setup: dict[str, Any]) -> None:
        from taskqueue.conf import get_settings
        from taskqueue.worker.forks import keep_from_copies
        from taskqueue.worker.reporting import Channel, keep_logs

        self._socket = sock
        keep_from_copies(sock)
        self._slots: int = setup["slots"]
        self._worker_name: str = setup["worker_name"]
        self._declares: bool = setup["declares"]
        self._max_memory: float | None = setup["max_memory"]
        self.channel = Channel(sock, max_log=get_settings().MAX_LOG)
        keep_logs()
        self._orders: SimpleQueue[Any] = SimpleQueue()
        self._waiting: dict[int, Any] = {}
        """The orders that are to run, by lease. One that was called back is not among them, though
        it still stands in the queue, and may have been sent again since."""
        self._running: dict[int, Any] = {}
        self._limits: dict[int, tuple[float, str, str]] = {}
        self._limits_changed = threading.Event()
        self._lock = threading.Lock()
        self._freshness: list[Any] = []

    def run(self) -> None:
        """Work until the parent says otherwise, or is gone."""
        from taskqueue.worker.reporting import flush_for_ever
        from taskqueue.worker.slots import EventLoop, MainSlot, ThreadSlot

        loop = EventLoop()
        main = MainSlot(loop) if self._slots == 1 and setup_is_process() else None
        for target in (self._listen, self._watch_limits):
            threading.Thread(
                target=target, name=f"taskqueue-{target.__name__}", daemon=True
            ).start()
        threading.Thread(target=flush_for_ever, args=(self.channel,), daemon=True).start()
        files = [
            path
            for module in list(sys.modules.values())
            if (path := getattr(module, "__file__", None)) and "site-packages" not in path
        ]
        self.channel.send((frames.READY, files))
        if self._declares:
            from taskqueue.worker.declaring import declare_schedules

            declare = partial(declare_schedules, self.channel, worker_name=self._worker_name)
            threading.Thread(target=declare, name="taskqueue-declare", daemon=True).start()
        if main is not None:
            self._work(main)
            return
        threads = [
            threading.Thread(target=self._work_in_thread, args=(ThreadSlot, loop))
            for _ in range(self._slots)
        ]
        for thread in threads:
            thread.daemon = True
            thread.start()
        for thread in threads:
            thread.join()

    def _work_in_thread(self, make_slot: Callable[[Any], Any], loop: Any) -> None:
        self._work(make_slot(loop))

    def _work(self, slot: Any) -> None:
        from taskqueue.engine.tally import Subject, Tally
        from taskqueue.worker.execution import Attempt
        from taskqueue.worker.interrupts import Interruption
        from taskqueue.worker.jobs import Order

        channel = self.channel
        subjects: dict[int, Subject] = {}
        tally = Tally(subjects.get)
        self._freshness.append(slot.freshness)
        while (raw := self._orders.get()) is not None:
            order = Order._make(raw)
            lease_id = order.lease_id
            interruption = Interruption()
            slot.interruption = interruption
            context = order.context(
                self._worker_name,
                report_progress=channel.report_progress,
                report_line=channel.report_line,
            )
            with self._lock:
                if self._waiting.get(lease_id) is not raw:
                    continue
                del self._waiting[lease_id]
                self._running[lease_id] = context, interruption
            self._set_limit(order)
            slot.freshness.before_task()
            subjects[lease_id] = order.subject()
            frame = Attempt(order, context, tally).run(slot.call)
            subjects.clear()
            with self._lock:
                self._running.pop(lease_id, None)
                self._limits.pop(lease_id, None)
            channel.send(frame)
            channel.forget(lease_id)
            slot.freshness.after_task()
            if self._max_memory is not None and resident_megabytes() > self._max_memory:
                channel.send((frames.OVERWEIGHT,))

    def _set_limit(self, order: Any) -> None:
        """Have the body interrupted when its time is over."""
        if not order.options and order.deadline_at is None:
            return
        timeout = json.loads(order.options).get("timeout") if order.options else None
        limit = None
        if timeout is not None:
            limit = (
                time.monotonic() + timeout,
                frames.TIMEOUT,
                f"The body ran for longer than its timeout of {timeout:g} s.",
            )
        if order.deadline_at is not None and (limit is None or order.deadline_at < limit[0]):
            limit = order.deadline_at, frames.DEADLINE, "The deadline passed while the body ran."
        if limit is not None:
            with self._lock:
                self._limits[order.lease_id] = limit
            self._limits_changed.set()

    def _watch_limits(self) -> None:
        while True:
            with self._lock:
                next_at = min((at for at, _, _ in self._limits.values()), default=None)
            wait = None if next_at is None else max(0.0, next_at - time.monotonic())
            self._limits_changed.wait(wait)
            self._limits_changed.clear()
            now = time.monotonic()
            with self._lock:
                over = [(key, limit) for key, limit in self._limits.items() if limit[0] <= now]
                for lease_id, _ in over:
                    del self._limits[lease_id]
            for lease_id, (_, why, detail) in over:
                self._interrupt(lease_id, why, detail)

    def _interrupt(self, lease_id: int, why: str, detail: str) -> None:
        from taskqueue.worker.interrupts import exception_for

        with self._lock:
            running = self._running.get(lease_id)
        if running is None:
            return
        context, interruption = running
        if why == frames.STOPPED:
            context._request_stop(detail)
        else:
            context._announce_limit(detail)
        interruption.interrupt(exception_for(why, detail))

    def _ask(self, lease_id: int, reason: str) -> None:
        with self._lock:
            running = self._running.get(lease_id)
        if running is not None:
            running[0]._request_stop(reason)

    def _listen(self) -> None:
        """Obey the parent, and end without it."""
        unpacker = Unpacker()
        try:
            while data := self._socket.recv(1 << 18):
                for frame in unpacker.feed(data):
                    self._obey(frame)
        except OSError:
            pass
        os._exit(0)

    def _obey(self, frame: frames.Frame) -> None:
        kind = frame[0]
        if kind == frames.RUN:
            with self._lock:
                for order in frame[1]:
                    self._waiting[order[0]] = order
            for order in frame[1]:
                self._orders.put(order)
        elif kind == frames.RECALL:
            self._recall(frame[1])
        elif kind == frames.ASK:
            self._ask(frame[1], frame[2])
        elif kind == frames.INTERRUPT:
            self._interrupt(frame[1], frame[2], frame[3])
        elif kind == frames.SUSPECT:
            for freshness in self._freshness:
                freshness.is_suspect = True
        elif kind == frames.EXIT:
            for _ in range(self._slots):
                self._orders.put(None)

    def _recall(self, lease_ids: list[int]) -> None:
        """Give back orders whose bodies have not started."""
        with self._lock:
            recalled = [lease_id for lease_id in lease_ids if lease_id in self._waiting]
            for lease_id in recalled:
                del self._waiting[lease_id]
        self.channel.send((frames.RECALLED, recalled))


def setup_is_process() -> bool:
    """Whether this child was started for the process pool."""
    return bool(_setup.get("pool") == "process")


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, where the kernel can (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def leave_to_parent(number: int, stack: object) -> None:
    """Do nothing: supervisors signal a whole group, and the parent decides about the bodies."""


def end_in_order() -> None:
    """Run the functions registered with `atexit`, such as the sending of reported errors."""
    end = threading.Timer(EXIT_SECONDS, os._exit, (0,))
    end.daemon = True
    end.start()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()


_setup: dict[str, Any] = {}


def main() -> None:
    """Start with the settings that the parent left in the environment, then obey its frames."""
    _setup.update(json.loads(os.environ.pop("TASKQUEUE_CHILD")))
    die_with_parent(_setup["parent"])
    # A handler, not SIG_IGN, which the programs that bodies start would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave_to_parent)
    sock = socket.socket(fileno=_setup["socket"])
    sock.set_inheritable(False)
    if _setup["presence"] is not None:
        hold_alone(_setup["presence"])
    sys.path[:] = _setup["path"]
    sys.argv[0] = _setup["argv0"]
    try:
        import django

        django.setup()
        from taskqueue.declarations.discovery import discover_tasks
        from taskqueue.worker.logs import show_logs

        show_logs()
        discover_tasks()
        child = Child(sock, setup=_setup)
    except BaseException:
        sock.sendall(pack((frames.BROKEN, traceback.format_exc()[-8000:])))
        sock.close()
        os._exit(3)
    child.run()
    end_in_order()
    # Threads that a body left behind would keep an ordinary exit waiting for ever.
    os._exit(0)


if __name__ == "__main__":
    # Under its real name, so that bodies that import this module find the same one.
    from taskqueue.worker.child import main as run_child

    run_child()
