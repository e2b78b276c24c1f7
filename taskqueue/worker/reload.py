"""Watching the project's source, so that children can be replaced when it changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable

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
