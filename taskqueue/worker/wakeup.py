"""What wakes a worker: signals, other threads, children, notifications, changed code."""

from __future__ import annotations

import os
import selectors
import signal
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any


class Alarm:
    """A pipe that any thread, and any signal handler, can write to."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """The end to wait on."""
        return self._read

    def ring(self) -> None:
        """Wake the sleeper."""
        try:
            os.write(self._write, b"!")
        except (BlockingIOError, OSError):
            pass

    def silence(self) -> None:
        """Forget that it rang."""
        try:
            while os.read(self._read, 4096):
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._read)
        os.close(self._write)


class Signals:
    """Handlers for the time a worker runs; they count, and ring.

    Once there was a signal, later ones are ignored after that time too: the process is on its way
    out, and one more must not change its exit code.
    """

    def __init__(self, alarm: Alarm, numbers: Iterable[signal.Signals]) -> None:
        self._alarm = alarm
        self._numbers = tuple(numbers)
        self._before: dict[signal.Signals, Any] = {}
        self.count = 0

    def __enter__(self) -> Signals:
        for number in self._numbers:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self.count else handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._alarm.ring()


class Watch:
    """A selector over what changes: children come and go, connections are opened anew."""

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
        """Watch it no longer; harmless if it is gone."""
        try:
            self._selector.unregister(source)
        except (KeyError, ValueError):
            pass

    def wait(self, seconds: float) -> list[Callable[[], None]]:
        """What to call, once something is ready or the time is over."""
        return [key.data for key, _ in self._selector.select(max(0.0, seconds))]

    def close(self) -> None:
        """Give the selector back."""
        self._selector.close()


INTERVAL = 0.5
"""Seconds between two looks."""


class Reloader:
    """Looks at the files that the children have imported."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._times: dict[str, float] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self.changed = ""
        threading.Thread(target=self._look, name="taskqueue-reload", daemon=True).start()

    def watch(self, files: Iterable[str]) -> None:
        """Look at these files too."""
        with self._lock:
            for path in files:
                self._times.setdefault(path, _modified(path))

    def has_changed(self) -> bool:
        """Whether a file has changed since this was last asked."""
        if not self.changed or not self._pending:
            return False
        self._pending = False
        return True

    _pending = False

    def _look(self) -> None:
        while not self._is_over.wait(INTERVAL):
            with self._lock:
                for path, before in self._times.items():
                    now = _modified(path)
                    if now != before:
                        self._times[path] = now
                        self.changed, self._pending = path, True
            if self._pending:
                self._on_change()


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
