"""Waking the main thread: for other threads, children, notifications, changed code."""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
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
        with suppress(OSError):  # It is full, or closed.
            os.write(self._write, b"!")

    def clear(self) -> None:
        """Forget that it was woken."""
        with suppress(BlockingIOError):
            while os.read(self._read, 4096):
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
        with suppress(KeyError, ValueError):
            self._selector.unregister(source)

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
        self._changed = ""
        threading.Thread(target=self._look, name="taskqueue-reload", daemon=True).start()

    def watch(self, files: Iterable[str]) -> None:
        """Watch these files too."""
        with self._lock:
            for path in files:
                self._times.setdefault(path, _modified(path))

    def take_changed(self) -> str:
        """The file that has changed since this was last asked; empty if none has."""
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
