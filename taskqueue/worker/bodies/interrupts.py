"""Interrupt a running body: by a signal, an exception in its thread, or its event loop."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from taskqueue.declarations import snapshots
from taskqueue.exceptions import DeadlineExceeded, MemoryExceeded, Stopped, TaskTimeout
from taskqueue.worker import frames
from taskqueue.worker.bodies.context import Context
from taskqueue.worker.bodies.order import Order
from taskqueue.worker.outcomes import over_time

SIGNAL = signal.SIGUSR2  # Interrupts system calls too, unlike an exception that is set in a thread.


# The exception raised in a body that is interrupted, by the reason.
INTERRUPTS = {
    frames.STOPPED: Stopped,
    frames.TIMEOUT: TaskTimeout,
    frames.DEADLINE: DeadlineExceeded,
    frames.MEMORY: MemoryExceeded,
}


class Interruption:
    """Interrupts one body, and remembers the reason."""

    __slots__ = ("_lock", "_raise", "context", "error")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._raise: Callable[[BaseException], object] | None = None

    def enter(self, raise_in_body: Callable[[BaseException], object]) -> None:
        """Begin a body; raise at once if it was interrupted before it started."""
        with self._lock:
            self._raise = raise_in_body
            error = self.error
        if error is not None:
            raise error

    def leave(self) -> None:
        """End a body: from now on there is nothing to interrupt."""
        with self._lock:
            self._raise = None

    def interrupt(self, error: BaseException) -> None:
        """Raise in the body, if it is running. Only the first reason counts."""
        with self._lock:
            if self.error is None:
                self.error = error
            if self._raise is not None:
                self._raise(self.error)


class TimeLimits:
    """Interrupts bodies whose timeout or deadline has passed."""

    def __init__(self, interrupt: Callable[[int, str, str], None]) -> None:
        """`interrupt` gets the lease, the reason, and a sentence.

        The body may have ended by then.
        """
        self._interrupt = interrupt
        self._limits: dict[int, tuple[float, str, str]] = {}
        # The orders whose time limits start again when their bodies report progress.
        self._renewed: dict[int, Order] = {}
        self._lock = threading.Lock()
        self._has_new = threading.Event()

    def add(self, order: Order) -> None:
        """Have the starting body interrupted when its time is over."""
        if not order.options and order.deadline_at is None:
            return
        options = snapshots.loaded(order.options) if order.options else {}
        timeout = None if snapshots.misfit(options) else options.get("timeout")
        limits = []
        if timeout is not None:
            renews = options.get("timeout_from") == "progress"
            detail = over_time(timeout, renews=renews)
            limits.append((time.monotonic() + timeout, frames.TIMEOUT, detail))
        if order.deadline_at is not None:
            detail = "The deadline passed while the body ran."
            limits.append((order.deadline_at, frames.DEADLINE, detail))
        if limits:
            with self._lock:
                self._limits[order.lease_id] = min(limits, key=lambda limit: limit[0])
                if timeout is not None and renews:
                    self._renewed[order.lease_id] = order
            self._has_new.set()

    def renew(self, lease_id: int) -> None:
        """Restart the time limit of a body that has reported progress, if its options say so."""
        # A later limit does not need to wake the thread: it checks at the earlier time anyway.
        if (order := self._renewed.get(lease_id)) is not None and lease_id in self._limits:
            self.add(order)

    def remove(self, lease_id: int) -> None:
        """Drop the limit of a body that has ended."""
        if lease_id in self._limits or lease_id in self._renewed:
            with self._lock:
                self._limits.pop(lease_id, None)
                self._renewed.pop(lease_id, None)

    def watch(self) -> NoReturn:
        """Enforce the limits, in a thread."""
        while True:
            with self._lock:
                next_at = min((at for at, _, _ in self._limits.values()), default=None)
            self._has_new.wait(None if next_at is None else max(0.0, next_at - time.monotonic()))
            self._has_new.clear()
            now = time.monotonic()
            with self._lock:
                over = [(key, limit) for key, limit in self._limits.items() if limit[0] <= now]
                for lease_id, _ in over:
                    del self._limits[lease_id]
            for lease_id, (_, why, detail) in over:
                self._interrupt(lease_id, why, detail)


class MainThread:
    """Raises in the main thread by a signal, whose handler Python runs between two steps."""

    def __init__(self) -> None:
        self._pending: BaseException | None = None
        self._armed = False
        signal.signal(SIGNAL, self._on_signal)

    def arm(self) -> None:
        """Allow exceptions to be raised from here on."""
        self._pending, self._armed = None, True

    def disarm(self) -> None:
        """Allow no exceptions from here on."""
        self._armed = False

    def raise_in_body(self, error: BaseException) -> None:
        """Raise in the main thread, as soon as it steps or its system call is interrupted."""
        self._pending = error
        signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)

    def _on_signal(self, number: int, stack: Any) -> None:
        error, self._pending = self._pending, None
        if self._armed and error is not None:
            raise error


def raise_in_thread(thread_id: int, error: BaseException) -> None:
    """Raise in a thread at its next step; a blocking call has to return first."""
    # The interpreter creates the instance itself; the message is added afterwards.
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread_id), ctypes.py_object(type(error))
    )
