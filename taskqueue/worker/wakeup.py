"""Waking the main thread: for other threads, children, notifications, changed code."""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable, Iterable
from typing import Any

RELOAD_INTERVAL = 0.5  # Seconds between two looks.


class WakePipe:
    """A pipe that any thread, and any signal handler, can write to."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """The end to wait on."""
        return self._read

    def wake(self) -> None:
        """Wake the sleeper."""
        try:
            os.write(self._write, b"!")
        except (BlockingIOError, OSError):
            pass

    def clear(self) -> None:
        """Forget that it was woken."""
        try:
            while os.read(self._read, 4096):
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._read)
        os.close(self._write)


class Watch:
    """A selector whose sources change: children come and go, connections are opened anew."""

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
        """Wait until something is ready or the time is over, and return what to call."""
        return [key.data for key, _ in self._selector.select(max(0.0, seconds))]

    def close(self) -> None:
        """Give the selector back."""
        self._selector.close()


class Reloader:
    """Watches the files that the children have imported."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._times: dict[str, float] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self.changed = ""
        self._pending = False
        threading.Thread(target=self._look, name="taskqueue-reload", daemon=True).start()

    def watch(self, files: Iterable[str]) -> None:
        """Watch these files too."""
        with self._lock:
            for path in files:
                self._times.setdefault(path, _modified(path))

    def has_changed(self) -> bool:
        """Whether a file has changed since this was last asked."""
        if not self.changed or not self._pending:
            return False
        self._pending = False
        return True

    def _look(self) -> None:
        while not self._is_over.wait(RELOAD_INTERVAL):
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
