"""Import in a separate thread the modules that a worker needs after its first tasks.

A worker's first claim should not wait for modules that it does not need. The code that advances
workflows and serves duties is a large part of the engine: if the thread that claims and records
imported it, tasks would wait for that. Work that needs these modules is postponed until they are
imported. If workflows are running when a worker starts, it imports the code that advances them
while its children start.
"""

from __future__ import annotations

import logging
import threading
from importlib import import_module

logger = logging.getLogger("taskqueue.worker")

# The code that advances workflows, and the duties, which need much more of the engine.
WORKFLOWS, DUTIES = "taskqueue.engine.workflows.rounds", "taskqueue.worker.duties"
# Seconds until another check whether they are imported.
PAUSE = 0.01


class LateImports:
    """The imports of one worker, which its threads share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}

    def begin(self, name: str = WORKFLOWS) -> None:
        """Begin to import a module, unless that has begun."""
        self._thread_of(name)

    @property
    def have_workflows(self) -> bool:
        """Return whether the code that advances workflows is imported.

        Begin the import if necessary.
        """
        return not self._thread_of(WORKFLOWS).is_alive()

    @property
    def have_duties(self) -> bool:
        """Return whether the duties are imported. Begin the import if necessary."""
        return not self._thread_of(DUTIES).is_alive()

    def _thread_of(self, name: str) -> threading.Thread:
        with self._lock:
            thread = self._threads.get(name)
            if thread is None:
                thread = self._threads[name] = threading.Thread(
                    target=_import, args=(name,), name="taskqueue-imports", daemon=True
                )
                thread.start()
            return thread


def _import(name: str) -> None:
    try:
        # First the modules that the duties need too: two threads that import the same module would
        # wait for each other.
        for each in (WORKFLOWS, name):
            import_module(each)
    except Exception:  # The code that needs the module gets the error where it matters.
        logger.debug("Module not imported ahead name=%s", name, exc_info=True)
