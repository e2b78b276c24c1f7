"""Wake the main thread for signals, other threads, children, notifications and changed code."""

from __future__ import annotations

import logging
import os
import random
import select
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn, TypeVar

from django.db import InterfaceError, OperationalError

from taskqueue.core.log_text import one_line

RELOAD_INTERVAL = 0.5  # Seconds between two looks.


class WakePipe:
    """A pipe that any thread, and any signal handler, can write to."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)

    def fileno(self) -> int:
        """Return the end to wait on."""
        return self._read

    @property
    def writer(self) -> int:
        """The end that wakes."""
        return self._write

    def wake(self) -> None:
        """Wake the waiting thread."""
        with suppress(OSError):  # It is full, or closed.
            os.write(self._write, b"!")

    def wait(self, seconds: float) -> None:
        """Wait until it is woken, or the time is over."""
        self._poll.poll(max(0.0, seconds) * 1000)

    def wait_beside(self, source: int) -> bool:
        """Wait until it is woken or the source is readable. Return whether the source is."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        poll.register(source, select.POLLIN)
        ready = dict(poll.poll())
        if self._read in ready:
            self.clear()
        return source in ready

    @property
    def is_woken(self) -> bool:
        """Whether it was woken since it was last cleared. Any thread may ask."""
        poll = select.poll()  # Its own: one that another thread waits with refuses this one.
        poll.register(self._read, select.POLLIN)
        return bool(poll.poll(0))

    def clear(self) -> None:
        """Reset the wake-up."""
        with suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        os.close(self._write)


class Watch:
    """A selector whose sources change: children come and go, connections are reopened."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def add(self, source: Any, on_ready: Callable[[], None], *, writes: bool = False) -> None:
        """Watch a source, or change what it is watched for."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writes else 0)
        try:
            self._selector.modify(source, events, on_ready)
        except KeyError:
            self._selector.register(source, events, on_ready)

    def remove(self, source: Any) -> None:
        """Stop watching it; harmless if it is gone."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def wait(self, seconds: float) -> list[Callable[[], None]]:
        """Wait until something is ready or the time is over, and return the functions to call."""
        return [key.data for key, _ in self._selector.select(max(0.0, seconds))]

    def close(self) -> None:
        """Close the selector."""
        self._selector.close()


class Reloader:
    """Watches the files that the children have imported."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._times: dict[str, float] = {}
        self._lock = threading.Lock()
        self._changed = ""
        threading.Thread(target=self._look, name="taskqueue-reload", daemon=True).start()

    def watch(self, files: Iterable[str]) -> None:
        """Watch these files too."""
        with self._lock:
            for path in files:
                self._times.setdefault(path, _modified(path))

    def take_changed(self) -> str:
        """Return a file that has changed since the last call; empty if none has."""
        changed = self._changed
        if changed:
            self._changed = ""
        return changed

    def _look(self) -> None:
        while True:
            time.sleep(RELOAD_INTERVAL)
            with self._lock:
                for path, before in self._times.items():
                    now = _modified(path)
                    if now != before:
                        self._times[path], self._changed = now, path
            if self._changed:
                self._on_change()


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


logger = logging.getLogger("taskqueue.worker")

STOPPING_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SHORTEST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # Seconds between two tries, before jitter.
LOOK_INTERVAL = 0.1  # Seconds between two checks whether to go on waiting.

T = TypeVar("T")


class Signals:
    """Counts stopping signals while a worker runs, and wakes it.

    The interpreter itself writes to `writer`, if one is given, as soon as a signal arrives: then
    other threads know of it before the main thread has run a handler.

    After the first signal, later ones are ignored even after that time: the process is ending, and
    another signal must not change its exit code.
    """

    def __init__(self, wake: Callable[[], None], *, writer: int = -1) -> None:
        self._wake = wake
        self._writer = writer
        self._before: dict[signal.Signals, Any] = {}
        self.count = 0

    def __enter__(self) -> Signals:
        for number in STOPPING_SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)
        self._writer = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def __exit__(self, *exception: object) -> None:
        signal.set_wakeup_fd(self._writer)
        for number, handler in self._before.items():
            was_told = self.count or signal.getsignal(number) is signal.SIG_IGN
            signal.signal(number, signal.SIG_IGN if was_told else handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._wake()


def until_reached(
    step: Callable[[], T], *, is_stopping: Callable[[], bool] = lambda: False
) -> T | None:
    """Repeat `step` until the database answers. Return None when it is time to stop.

    An error is logged once, however often it recurs.
    """
    reason = ""
    pause = SHORTEST_PAUSE
    while not is_stopping():
        try:
            answer = step()
        except (OperationalError, InterfaceError) as error:
            text = one_line(" ".join(str(error).split()))
            if text != reason:
                logger.error("Database away, waiting for it error=%s", text)
            reason = text
        else:
            if reason:
                logger.info("Database back")
            return answer
        _sleep(pause * (0.5 + random.random()), is_stopping)  # noqa: S311
        pause = min(LONGEST_PAUSE, pause * 2)
    return None


def _sleep(seconds: float, is_stopping: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + seconds
    while (left := ends_at - time.monotonic()) > 0 and not is_stopping():
        time.sleep(min(left, LOOK_INTERVAL))


def ending_at_once() -> Signals:
    """Make TERM and INT end the process at once with exit code 0, whatever it waits for.

    This is for the time before a worker has begun and after it has ended, when there is nothing to
    finish.
    """
    return Signals(_end)


def _end() -> NoReturn:
    for number in STOPPING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)
