"""Snapshots: the options that a worker needs, as they were when the task was enqueued.

A snapshot holds only values that differ from the defaults. `making_snapshots` makes it, and finds
out which of its keys are known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from taskqueue.core.retries import Backoff, class_path, from_snapshot

# That a task belongs to a step of a workflow, and finds values for references in its arguments.
STEP = "step"
EMPTY = "{}"


def is_storable(backoff: object) -> bool:
    """Return whether the policy can be stored with a task; a callable cannot."""
    return backoff is None or isinstance(backoff, Backoff)


@lru_cache(maxsize=256)
def loaded(text: str) -> Any:
    """Return the snapshot in a JSON text. Tasks of one definition share it: do not change it."""
    return json.loads(text)


# Options that a worker computes with before their definition is asked.
GRACES = ("stop_grace", "kill_grace")
NUMBERS = ("timeout", "max_memory", *GRACES)
# Seconds or megabytes. A thread cannot wait for much longer: `threading.TIMEOUT_MAX`.
LARGEST = 9e9
MOST_SHOWN = 40  # Characters of a value.


def misfit(snapshot: Any) -> str:
    """Return an option that must be a number and is none, or is far too large; else empty.

    A newer version may have stored it, or somebody by hand.
    """
    if not isinstance(snapshot, dict):
        return str(snapshot)[:MOST_SHOWN]
    for name in NUMBERS:
        value = snapshot.get(name)
        is_number = isinstance(value, int | float) and abs(value) <= LARGEST
        if name in snapshot and not (is_number or (value is None and name not in GRACES)):
            return f"{name}={str(value)[:MOST_SHOWN]!r}"
    return ""


def retries(snapshot: Mapping[str, Any], exception_class: type[BaseException]) -> bool:
    """Return whether a failure of that class may be retried, by the names of classes.

    Names, not classes: the process that decides need not be able to import them.
    """
    paths = _paths(exception_class)
    if not paths.isdisjoint(snapshot.get("give_up_on", ())):
        return False
    retry_for = snapshot.get("retry_for")
    return retry_for is None or not paths.isdisjoint(retry_for)


def snoozes(snapshot: Mapping[str, Any], exception_class: type[BaseException]) -> bool:
    """Return whether an attempt that raised that class runs again and does not count."""
    return not _paths(exception_class).isdisjoint(snapshot.get("snooze_on", ()))


def _paths(exception_class: type[BaseException]) -> set[str]:
    return {class_path(base) for base in exception_class.__mro__}


def delay(snapshot: Mapping[str, Any], failures: int) -> float:
    """Return the seconds until the next attempt, after this many failures."""
    return from_snapshot(snapshot.get("backoff")).delay(failures)
