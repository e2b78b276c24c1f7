"""Imports, in a thread of its own, what a worker needs after its first tasks.

A worker's first claim waits for no module that it does not need. What advances workflows and the
duties are much of the engine: were they imported by the thread that claims and records, its tasks
would wait for that. Until they are there, what needs them is put off.
"""

from __future__ import annotations

import logging
import threading
from importlib import import_module

logger = logging.getLogger("taskqueue.worker")

# In the order in which they are needed.
MODULES = ("taskqueue.engine.workflows.rounds", "taskqueue.worker.duties")
# Seconds until another look whether they are there.
PAUSE = 0.01


class LateImports:
    """The imports of one worker, which its threads share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin, unless they have begun."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=_import_all, name="taskqueue-imports", daemon=True
                )
                self._thread.start()

    @property
    def are_over(self) -> bool:
        """Whether nobody has to wait for them any longer; they begin at the latest now."""
        self.begin()
        return self._thread is not None and not self._thread.is_alive()


def _import_all() -> None:
    try:
        for name in MODULES:
            import_module(name)
    except Exception:  # Whoever needs the module meets the error where it matters.
        logger.debug("Modules not imported ahead", exc_info=True)
