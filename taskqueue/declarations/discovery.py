"""Importing the project's `tasks` modules."""

from __future__ import annotations

from threading import RLock

from django.utils.module_loading import autodiscover_modules

_lock = RLock()
_is_complete = False


def discover_tasks() -> None:
    """Import the `tasks` module of every installed app, once. Raises what a module raises."""
    global _is_complete
    with _lock:
        if not _is_complete:
            autodiscover_modules("tasks")
            _is_complete = True
