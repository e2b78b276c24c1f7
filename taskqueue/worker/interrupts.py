"""Interrupting a running body: by a signal, by an exception in its thread, by its event loop."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import threading
from collections.abc import Callable
from typing import Any

from taskqueue.exceptions import DeadlineExceeded, Stopped, TaskTimeout
from taskqueue.worker import frames

SIGNAL = signal.SIGUSR2
"""Interrupts system calls too, which an exception set in a thread does not."""


def exception_for(why: str, detail: str) -> BaseException:
    """The exception to raise in a body that is interrupted."""
    if why == frames.TIMEOUT:
        return TaskTimeout(detail)
    if why == frames.DEADLINE:
        return DeadlineExceeded(detail)
    return Stopped(detail)


class Interruption:
    """Interrupts one body, and remembers why."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._raise: Callable[[BaseException], None] | None = None

    def enter(self, raise_in_body: Callable[[BaseException], None]) -> None:
        """Begin a body; raise at once what interrupted it before it started."""
        with self._lock:
            self._raise = raise_in_body
            error = self.error
        if error is not None:
            raise error

    def leave(self) -> None:
        """End a body: there is nothing to interrupt any more."""
        with self._lock:
            self._raise = None

    def interrupt(self, error: BaseException) -> None:
        """Raise in the body, if it runs. The first reason counts."""
        with self._lock:
            if self.error is None:
                self.error = error
            if self._raise is not None:
                self._raise(self.error)


class MainThread:
    """Raises in the main thread by a signal, whose handler Python runs between two steps."""

    def __init__(self) -> None:
        self._pending: BaseException | None = None
        self._armed = False
        signal.signal(SIGNAL, self._on_signal)

    def arm(self) -> None:
        """Allow an exception to be raised from here on."""
        self._pending, self._armed = None, True

    def disarm(self) -> None:
        """Allow none from here on."""
        self._armed = False

    def raise_in_body(self, error: BaseException) -> None:
        """Raise in the main thread, as soon as it steps or its system call is interrupted."""
        self._pending = error
        signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)

    def _on_signal(self, number: int, stack: Any) -> None:
        error, self._pending = self._pending, None
        if self._armed and error is not None:
            raise error


def raise_in_thread(thread_id: int) -> Callable[[BaseException], None]:
    """Raise in a thread at its next step; a blocking call has to return first."""

    def raise_in_body(error: BaseException) -> None:
        # The interpreter makes an instance itself; the message is put on it afterwards.
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread_id), ctypes.py_object(type(error))
        )

    return raise_in_body


def cancel_in_loop(
    loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]
) -> Callable[[BaseException], None]:
    """Cancel a coroutine on its loop."""

    def raise_in_body(error: BaseException) -> None:
        loop.call_soon_threadsafe(task.cancel)

    return raise_in_body
